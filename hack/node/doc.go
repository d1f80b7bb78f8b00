// Package node installs the chart on a real Kubernetes node, with images built from this checkout,
// and runs there what docs/operations.md tells an operator to run. The node is made of processes of
// this machine that have processes, mounts and a network of their own; it needs root, and says so
// where there is none.
package node
