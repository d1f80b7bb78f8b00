package node

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

const (
	ofRegistrar = "--selector app.kubernetes.io/instance=registrar"
	former      = "0.0.1" // until a version is released, this very checkout stands for one
	current     = "0.1.0"
)

func (s *site) install() {
	s.chart(former)
	notes := s.documented("helm install registrar charts/registrar --set evaluation.enabled=true")
	if !strings.Contains(notes, "THIS IS AN EVALUATION") {
		s.t.Errorf("the notes do not say that this is an evaluation:\n%s", notes)
	}
	s.documented("helm test registrar")
	s.platformKey = s.secretValue("registrar-keys", "PLATFORM_KEY")
}

// values are an evaluation's whose receivers are in the cluster.
var values = fmt.Sprintf(`
evaluation: {enabled: true}
webhooks: {allowNetworks: [%q, %q], caSecret: receivers-authority}
`, stack.PodNetwork, stack.ServiceNetwork)

const endpoint = `
apiVersion: registrar.dev/v1beta1
kind: WebhookEndpoint
metadata: {name: school, namespace: default}
spec: {organization: school, url: "https://` + receiverHost + `:8443/hook"}
`

func (s *site) provisionOne() {
	s.write("production.yaml", values)
	s.documented("helm upgrade registrar charts/registrar --values production.yaml --wait")
	s.platform(http.MethodPut, "organizations/school", `{"name": "School", "language_tests_enabled": true}`, nil)
	var made struct{ Key string }
	s.platform(http.MethodPost, "organizations/school/api-keys", `{"name": "Tests", "access": "full"}`, &made)
	s.key = made.Key
	must(s.t, s.node.Apply(s.t.Context(), endpoint))
	s.must("kubectl wait --for=condition=Ready whe/school --timeout=2m")
	ref := strings.Fields(s.must(`kubectl get whe school --output jsonpath='{.status.secretRef.name} {.status.secretRef.key}'`))
	s.secret = s.secretValue(ref[0], ref[1])
	if status, err := s.provision(http.DefaultClient, "asha@north-institute.org"); status != http.StatusCreated {
		s.t.Fatalf("%d %v", status, err)
	}
	s.students = append(s.students, "asha@north-institute.org")
	s.said(s.students)
}

// runs waits until all pods of the programs run the version, and none is on its way out.
func (s *site) runs(version string) {
	s.t.Helper()
	s.await("pods of version "+version, func() error {
		out, err := s.sh(`kubectl get pod --selector registrar.dev/program --output go-template='{{range .items}}{{(index .spec.containers 0).image}} {{.metadata.deletionTimestamp}}{{"\n"}}{{end}}'`)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for _, line := range lines {
			if !strings.HasSuffix(line, ":"+version+" <no value>") {
				return errors.New(out)
			}
		}
		if len(lines) != 8 {
			return errors.New(out)
		}
		return nil
	})
}

func (s *site) upgrade() {
	s.chart("")
	l := s.load("upgrade", 0)
	s.documented("helm upgrade registrar charts/registrar --values production.yaml --wait")
	s.runs(current)
	l.end()
}

func (s *site) rollBack() {
	l := s.load("rollback", 0)
	s.documented("helm rollback registrar --wait")
	s.runs(former)
	l.end()
}

// patience is how long a caller repeats a call while pods are killed.
const patience = 45 * time.Second

func (s *site) kill() {
	l := s.load("kill", patience)
	s.documented("for program in ")
	s.ready()
	l.end()
	s.ping("after-kill")
}

// ping has the operator send a test event, which shows that it works.
func (s *site) ping(token string) {
	s.t.Helper()
	pings := func() (n int) {
		all, err := s.received()
		must(s.t, err)
		return len(slices.DeleteFunc(all, func(r stack.Received) bool { return r.Headers["X-Service-Event"] != "ping" }))
	}
	before := pings()
	s.must("kubectl annotate --overwrite whe/school registrar.dev/send-test=" + token)
	s.await("a ping", func() error {
		if pings() <= before {
			return errors.New("none")
		}
		return nil
	})
}

func (s *site) deleteRedis() {
	l := s.load("redis", patience)
	s.documented("kubectl delete pod registrar-valkey-0")
	s.must("kubectl rollout status statefulset/registrar-valkey --timeout=2m")
	l.end()
}

func (s *site) drain() {
	l := s.load("drain", patience)
	s.documented("kubectl drain ", "NODE=node1")
	s.documented("kubectl uncordon ", "NODE=node1")
	s.ready()
	l.end()
}

func (s *site) rotate() {
	present := s.secretValue("registrar-keys", "SECRET_KEYSET")
	s.write("present.json", present)
	s.documented("SECRET_KEYSET_FILE=present.json api-server rotate-keyset add")
	s.documented("SECRET_KEYSET_FILE=step1.json api-server rotate-keyset promote")
	put := s.lookUp("kubectl patch secret registrar-keys --patch \"{\\\"data\\\"")
	restart := s.lookUp("kubectl rollout restart deployment --selector")
	done := s.lookUp("kubectl rollout status deployment --selector")
	ended := s.lookUp("until [ -z \"$(kubectl get pod")
	roll := func(step string) {
		s.must(put, "STEP="+step)
		s.must(restart)
		s.must(done)
		s.must(ended)
		s.runs(former)
	}
	l := s.load("keyset", 0)
	roll("step1.json")
	database := "DATABASE_URL=" + s.secretValue("registrar-connections", "DATABASE_URL")
	drop := s.lookUp("SECRET_KEYSET_FILE=step2.json api-server rotate-keyset drop")
	if _, err := s.sh(drop, database); err == nil {
		s.t.Error("the older key is dropped while it encrypts everything")
	}
	roll("step2.json")
	status := s.lookUp("SECRET_KEYSET_FILE=step2.json api-server rotate-keyset status")
	s.await("everything is encrypted with the new key", func() error {
		if said := s.must(status, database); !strings.Contains(said, "Nothing is encrypted with an older key") {
			return errors.New(said)
		}
		return nil
	})
	s.must(drop, database)
	roll("step3.json")
	before, err := seal.New([]byte(present))
	must(s.t, err)
	after, err := seal.New([]byte(s.secretValue("registrar-keys", "SECRET_KEYSET")))
	must(s.t, err)
	check.False(s.t, "the keyset has an older key", after.Rotating(), "after step3.json was rolled out")
	check.False(s.t, "the key is the same as before the rotation", bytes.Equal(before.Primary(), after.Primary()), "")
	l.end()
	s.ping("after-rotation")

	previous := s.platformKey
	s.platformKey = seal.Token()
	s.documented("kubectl patch secret registrar-keys --patch '{\"stringData\"", "PLATFORM_KEY="+s.platformKey, "PLATFORM_KEY_PREVIOUS="+previous)
	s.documented("kubectl rollout restart deployment/registrar-api-server")
	s.must(done)
	s.runs(former)
	s.ready()
	s.platform(http.MethodPut, "organizations/school", `{"name": "School", "language_tests_enabled": true}`, nil)
}

func (s *site) inspect() {
	forward := s.lookUp("kubectl port-forward service/registrar-worker-private 9090")
	password := strings.TrimSpace(s.documented("kubectl get secret registrar-keys --output go-template='{{.data.ASYNQ_PASSWORD"))
	script := forward + ` > forwarded & trap "kill $!" EXIT; until curl -s -o /dev/null http://localhost:9090/healthz; do sleep 0.2; done
curl -s -o /dev/null -w '%{http_code} ' http://localhost:9090/asynq/
curl -s -o /dev/null -w '%{http_code} ' -u "registrar:$PASSWORD" http://localhost:9090/asynq/
curl -s -u "registrar:$PASSWORD" http://localhost:9090/asynq/api/queues | grep -o '"queue":"webhook"' | head -n 1
curl -s -o /dev/null -w '%{http_code}' -X POST -u "registrar:$PASSWORD" http://localhost:9090/asynq/api/queues/webhook:pause`
	out := strings.Fields(s.must(script, "PASSWORD="+password))
	want := []string{"401", "200", `"queue":"webhook"`, "405"}
	if check.True(s.t, "number of lines is at least 4", len(out) >= 4, "without a password, with it, the queues, pausing one: %q, want %q", out, want) {
		check.Slices(s.t, "the last lines", out[len(out)-4:], want, "without a password, with it, the queues, pausing one: %q, want %q", out, want)
	}
}

func (s *site) restore() {
	database := "DATABASE_URL=" + s.secretValue("registrar-connections", "DATABASE_URL")
	redis := "REDIS_URL=" + s.secretValue("registrar-connections", "REDIS_URL")
	s.documented("pg_dump ", database)
	s.documented("kubectl get secret registrar-keys --output yaml")
	if status, err := s.provision(http.DefaultClient, "late@north-institute.org"); status != http.StatusCreated {
		s.t.Fatalf("%d %v", status, err)
	}
	s.documented("kubectl scale deployment --replicas=0")
	s.documented("kubectl wait pod --for=delete")
	s.documented("psql ", database)
	s.documented("pg_restore ", database)
	s.documented("api-server after-restore", database)
	s.documented("kubectl apply -f registrar-keys.yaml")
	s.documented("redis-cli ", redis)
	s.documented("kubectl scale deployment --replicas=2")
	s.ready()
	// The one who came after the backup is not known any more, and is sent again.
	for email, want := range map[string]int{"asha@north-institute.org": http.StatusOK, "late@north-institute.org": http.StatusCreated} {
		if status, err := s.provision(http.DefaultClient, email); status != want {
			s.t.Errorf("%s: %d %v, want %d", email, status, err, want)
		}
	}
	s.students = append(s.students, "late@north-institute.org")
	s.said(s.students)
}

// beside is a second release: another version, of the same name in a namespace of its own, whose operator serves the same namespace.
func (s *site) beside() {
	s.write("staging.yaml", `
evaluation: {enabled: true, postgres: {persistence: {enabled: false}}}
crds: {enabled: false}
operator: {className: staging, clusterName: staging, watchNamespaces: [default], replicas: 1}
apiServer: {replicas: 1}
worker: {replicas: 1}
webhookSender: {replicas: 1}
`)
	s.must("helm install registrar charts/registrar --namespace staging --create-namespace --values staging.yaml --wait")
	s.answer("http://registrar-platform.staging:8081/platform/v1/openapi.yaml")
	status := s.platformOf("staging", s.secretIn("staging", "registrar-keys", "PLATFORM_KEY"), http.MethodPut, "organizations/school", `{"name": "School"}`, nil)
	check.Equal(s.t, "status of the organization at the second release", status, http.StatusCreated, "")
	must(s.t, s.node.Apply(s.t.Context(), `
apiVersion: registrar.dev/v1beta1
kind: WebhookEndpoint
metadata: {name: rehearsal, namespace: default}
spec: {className: staging, organization: school, url: "https://rehearsal.example/hook"}
`))
	s.must("kubectl wait --for=condition=Ready whe/rehearsal --timeout=2m")
	s.ping("beside")
	said := s.must("helm uninstall registrar --namespace staging --wait 2>&1")
	check.Contains(s.t, "what the uninstall of the second says", said, "default/rehearsal stays with its URL", "")
	check.Lacks(s.t, "what the uninstall of the second says", said, "default/school", "")
	check.Equal(s.t, "finalizers of a resource of the second", s.must("kubectl get whe/rehearsal --output jsonpath='{.metadata.finalizers}'"), "", "")
	s.must("kubectl delete whe/rehearsal --timeout=1m")
	s.must("kubectl delete namespace staging --timeout=3m")
	s.ready()
	s.ping("after-staging")
}

func (s *site) uninstall() {
	notes := s.must("helm get notes registrar")
	said := s.must(s.lookUp("helm uninstall registrar") + " 2>&1") // a hook's output is on the standard error
	check.Contains(s.t, "what the uninstall says", said, "default/school stays with its URL", "")
	check.Equal(s.t, "finalizers of a resource that stays", s.must("kubectl get whe/school --output jsonpath='{.metadata.finalizers}'"), "", "")
	_, notified, found := strings.Cut(notes, "kubectl --namespace default delete ")
	if !found {
		s.t.Fatalf("the notes do not say what is left:\n%s", notes)
	}
	notified, _, _ = strings.Cut(notified, "\n")
	want := strings.Fields(notified)
	slices.Sort(want)
	const kinds = "all,jobs,secrets,configmaps,serviceaccounts,persistentvolumeclaims,networkpolicies,poddisruptionbudgets,roles,rolebindings,clusterroles,clusterrolebindings,leases,customresourcedefinitions"
	s.await("what is left is what the notes say", func() error {
		out, err := s.sh("kubectl get " + kinds + " " + ofRegistrar + " --output name --ignore-not-found")
		if err != nil {
			return err
		}
		left := strings.Fields(strings.ReplaceAll(out, ".apiextensions.k8s.io/", "/"))
		slices.Sort(left)
		if !slices.Equal(left, want) {
			return fmt.Errorf("left: %v, notified: %v", left, want)
		}
		return nil
	})
	s.must("kubectl delete --timeout=2m " + notified) // the definition, with the resource
	rest := s.must("kubectl get " + kinds + " --output name | grep -i registrar || true")
	check.Equal(s.t, "what is left without a label of the release", strings.TrimSpace(rest), "", "after the deletion of %s", notified)
}

// chosenID is the user and group that the cluster chooses for the pods of the production.
const chosenID = "1000650000"

// choosesIDs lets the release's pods run as OpenShift's restricted-v2 does: a pod that names an id of its own is
// refused, and the others get the namespace's.
const choosesIDs = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: choose-ids}
spec:
  reinvocationPolicy: Never
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
    objectSelector: {matchLabels: {app.kubernetes.io/instance: registrar}}
  matchConditions:
    - {name: names-none, expression: "!has(object.spec.securityContext.runAsUser)"}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsUser: ` + chosenID + `, fsGroup: ` + chosenID + `}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: choose-ids}
spec: {policyName: choose-ids}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse-ids}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
    objectSelector: {matchLabels: {app.kubernetes.io/instance: registrar}}
  validations:
    - expression: "object.spec.securityContext.runAsUser == ` + chosenID + ` && object.spec.securityContext.fsGroup == ` + chosenID + ` && !has(object.spec.securityContext.runAsGroup)"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse-ids}
spec: {policyName: refuse-ids, validationActions: [Deny]}
`

// policy applies choosesIDs, and waits until it is in force.
func (s *site) policy() {
	s.t.Helper()
	must(s.t, s.node.Apply(s.t.Context(), choosesIDs))
	s.write("pod.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: asks, labels: {app.kubernetes.io/instance: registrar}}
spec:
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    seccompProfile: {type: RuntimeDefault}
  containers: [{name: asks, image: "registrar.local/receiver:1", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
`)
	s.await("a pod with an id of its own is refused", func() error {
		out, err := s.sh("kubectl create --dry-run=server --filename pod.yaml")
		if err == nil || !strings.Contains(err.Error(), "refuse-ids") {
			return fmt.Errorf("%s %w", out, err)
		}
		return nil
	})
	s.await("the others get one", func() error {
		out, err := s.sh("grep -v runAsUser pod.yaml | kubectl create --dry-run=server --output jsonpath={.spec.securityContext.runAsUser} --filename -")
		if err != nil || out != chosenID {
			return fmt.Errorf("%s %w", out, err)
		}
		return nil
	})
}

// production is an installation as the chart's README has it: every secret is its owner's, and the
// databases are elsewhere. The evaluation's own stand for them here. The cluster chooses the ids of users, the receiver's
// certificate is of a private authority, and the site adds objects, variables, volumes and containers of its own.
func (s *site) production() {
	s.must("kubectl delete persistentvolume disk --wait=false")
	s.volume(s.dir + "/volume")
	s.must(`helm template stores charts/registrar --dry-run=server --set evaluation.enabled=true --show-only templates/evaluation.yaml --show-only templates/secrets.yaml | kubectl apply -f -`)
	s.must("kubectl rollout status statefulset --timeout=2m")
	database := strings.TrimSpace(s.secretValue("stores-registrar-connections", "DATABASE_URL"))
	redis := strings.TrimSpace(s.secretValue("stores-registrar-connections", "REDIS_URL"))
	s.must(`kubectl create secret generic registrar-database --from-literal=DATABASE_URL="$DATABASE_URL"`, "DATABASE_URL="+database)
	s.must(`kubectl create secret generic registrar-redis --from-literal=REDIS_URL="$REDIS_URL"`, "REDIS_URL="+redis)
	s.must(`kubectl create secret generic registrar-mail --from-literal=SMTP_URL=smtp://mail.invalid:25`)
	s.must(`kubectl create secret generic registrar-own --from-literal=key=0123456789abcdef0123456789 --from-literal=page=0123456789abcdef --from-literal=keyset="$(api-server new-keyset)"`)
	s.policy()
	s.write("production.yaml", fmt.Sprintf(`
omitIds: always
caBundle: {secret: receivers-authority}
webhooks: {allowNetworks: [%q, %q]}
extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Release.Name }}-site"}, data: {SITE: north}}
worker:
  extraEnvFrom: [{configMapRef: {name: registrar-site}}]
  extraVolumes: [{name: site, configMap: {name: registrar-site}}, {name: certs, secret: {secretName: receiver}}]
  extraVolumeMounts: [{name: site, mountPath: /etc/site}]
  extraInitContainers:
    - {name: before, image: %q, args: [new-keyset], securityContext: &least {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
  extraContainers:
    - {name: beside, image: "registrar.local/receiver:1", securityContext: *least, volumeMounts: [{name: certs, mountPath: /certs}]}
publicUrl: https://registrar.example
database: {existingSecret: registrar-database}
redis: {existingSecret: registrar-redis}
mail: {existingSecret: registrar-mail, from: no-reply@registrar.example}
platformKey: {existingSecret: registrar-own, existingSecretKey: key}
keyset: {existingSecret: registrar-own, existingSecretKey: keyset}
queuesPage: {existingSecret: registrar-own, existingSecretKey: page}
`, stack.PodNetwork, stack.ServiceNetwork, registry+"api-server:"+current))
	s.documented("helm install registrar charts/registrar --values production.yaml --wait")
	s.must("helm test registrar")
	s.runs(current)
	s.ready()
	s.platformKey = "0123456789abcdef0123456789"
	s.platform(http.MethodPut, "organizations/school", `{"name": "School"}`, nil)
	must(s.t, s.node.Apply(s.t.Context(), endpoint))
	s.must("kubectl wait --for=condition=Ready whe/school --timeout=2m")
	s.ping("by-the-bundle")
	// Argo CD renders without asking the cluster, and applies that.
	keyset := s.secretValue("registrar-own", "keyset")
	s.must(`helm template registrar charts/registrar --values production.yaml --no-hooks | kubectl apply --server-side --force-conflicts -f -`)
	s.ready()
	check.Equal(s.t, "the keyset", s.secretValue("registrar-own", "keyset"), keyset, "after another rendering")
	if out, err := s.sh("kubectl get secret registrar-keys"); err == nil {
		s.t.Errorf("secrets are generated though all are given: %s", out)
	}
	s.must("helm uninstall registrar --wait")
}
