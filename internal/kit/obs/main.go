package obs

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/registrar-dev/registrar/internal/kit/version"
)

// Main runs the program called name with its arguments, environment and standard output,
// until it ends or is asked to by SIGTERM or SIGINT, which end ctx. It returns the exit
// status: 1 when run returns an error, which is printed. Asked for --version, the program says it and ends.
func Main(name string, run func(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error) int {
	if version.Asked(os.Args[1:]) {
		fmt.Fprintln(os.Stdout, version.Line(name))
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return 1
	}
	return 0
}
