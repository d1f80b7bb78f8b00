//go:build !linux

package stack

import (
	"context"
	"errors"
	"syscall"
)

var errNoIsolation = errors.New("only Linux has what a node needs")

func isolate(*syscall.SysProcAttr) {}

// CanIsolate says why Command.Isolated would not work here.
func CanIsolate(context.Context) error { return errNoIsolation }

// SettleIn is for Linux.
func SettleIn(context.Context, string, string) error { return errNoIsolation }

// MakeCgroup is for Linux.
func MakeCgroup(string) (release func() error, err error) { return nil, errNoIsolation }

func makeCgroup(string) error { return errNoIsolation }
