// Command kube holds, in one executable, every Kubernetes program that the local cluster
// needs. It acts as the program named by argv[0] (through a symbolic link) or, when called
// kube, by its first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	helmcmd "helm.sh/helm/v4/pkg/cmd"
	helmkube "helm.sh/helm/v4/pkg/kube"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(kcm.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kubectl":                 runKubectl,
	"helm":                    runHelm,
	"kwok":                    runKwok,
}

func run(c *cobra.Command) { os.Exit(cli.Run(c)) }

func runKubectl() {
	logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) //nolint:errcheck
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

func runHelm() { // as helm.sh/helm/v4/cmd/helm
	helmkube.ManagedFieldsManager = "helm"
	c, err := helmcmd.NewRootCmd(os.Stdout, os.Args[1:], helmcmd.SetupLogging)
	if err == nil {
		err = c.Execute()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func runKwok() { // as sigs.k8s.io/kwok/cmd/kwok
	// Kubernetes has put its own "version" on pflag.CommandLine, which cobra merges.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)
	fs := pflag.NewFlagSet("global", pflag.ContinueOnError)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	fs.Usage = func() {}
	ctx := signals.SetupSignalContext()
	ctx, _ = kwoklog.InitFlags(ctx, fs)
	ctx, err := kwokconfig.InitFlags(ctx, fs)
	if err == nil {
		c := kwok.NewCommand(ctx)
		c.PersistentFlags().AddFlagSet(fs)
		err = c.ExecuteContext(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		os.Exit(1)
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kube" {
		if len(os.Args) < 2 {
			fmt.Fprintln(os.Stderr, "usage: kube PROGRAM [argument...]; programs:")
			for p := range programs {
				fmt.Fprintln(os.Stderr, "  "+p)
			}
			os.Exit(2)
		}
		name, os.Args = os.Args[1], os.Args[1:]
	}
	p, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "kube: no program %q\n", name)
		os.Exit(2)
	}
	p()
}
