package obs

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main runs the program called name with its arguments, environment and standard output,
// until it ends or is asked to by SIGTERM or SIGINT, which end ctx. It returns the exit
// status: 1 when run returns an error, which is printed.
func Main(name string, run func(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return 1
	}
	return 0
}
