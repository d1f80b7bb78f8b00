package webhook

import (
	"maps"
	"slices"
)

// Causes lists the causes that are no HTTP status.
func Causes() []string { return slices.Sorted(maps.Keys(causes)) }
