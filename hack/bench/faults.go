package main

import (
	"context"
	"os/exec"

	"github.com/registrar-dev/registrar/hack/stack"
)

// faults runs the end-to-end test of all faults in full size; it reports by itself.
func faults(ctx context.Context, r *run) error {
	root, err := stack.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "run", "-C", "hack", "./test", "--", "-v", "-run", "TestEveryEventArrivesThroughAllFaults", "-timeout", "18m", "./hack/e2e", "-args", "-events", "50000", "-outage", "20s")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, r.out, r.out
	if err := cmd.Run(); err != nil {
		return err
	}
	r.verdict("through all faults", true, "every event received by every healthy URL, at most 0.5 % twice, each signature right; off after exactly 50 failures",
		"holds over 50,000 events: the test's own lines are below")
	return nil
}
