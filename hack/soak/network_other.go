//go:build !linux

package main

import (
	"context"
	"errors"
	"net"
)

const (
	farAddress = "10.213.77.2"
	farNetwork = "10.213.77.0/24"
)

// link is a slow network, which only Linux has.
type link struct{}

func newLink(context.Context) (*link, error) { return nil, errors.ErrUnsupported }

func (*link) listen(context.Context, string) (net.Listener, error) { return nil, errors.ErrUnsupported }
func (*link) slow(context.Context) error                           { return errors.ErrUnsupported }
func (*link) fast(context.Context) error                           { return errors.ErrUnsupported }
func (*link) close(context.Context) error                          { return nil }
