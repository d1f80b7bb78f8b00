package org

import "slices"

// Scope is a part of the partner API that a key may be limited to (reference: conventions#scopes).
// "" is what every key may call.
type Scope string

// The scopes. One that ends in :read changes nothing.
const (
	ScopeProvision       Scope = "provision"
	ScopeRoster          Scope = "roster"
	ScopeStudentsRead    Scope = "students:read"
	ScopeCatalogRead     Scope = "catalog:read"
	ScopeAssignments     Scope = "assignments" // with reading them
	ScopeAssignmentsRead Scope = "assignments:read"
	ScopeResultsRead     Scope = "results:read"
	ScopeReportsRead     Scope = "reports:read"
	ScopeEventsRead      Scope = "events:read"
	ScopeExplainRead     Scope = "explain:read" // shows of a student what several others show
	ScopeWebhooks        Scope = "webhooks"     // with reading them
	ScopeWebhooksRead    Scope = "webhooks:read"
)

// Scopes lists them in the order in which people choose.
func Scopes() []Scope {
	return []Scope{ScopeProvision, ScopeRoster, ScopeStudentsRead, ScopeCatalogRead, ScopeAssignments, ScopeAssignmentsRead,
		ScopeResultsRead, ScopeReportsRead, ScopeEventsRead, ScopeExplainRead, ScopeWebhooks, ScopeWebhooksRead}
}

// Reads says whether nothing can be changed with the scope.
func (s Scope) Reads() bool {
	switch s {
	case "", ScopeStudentsRead, ScopeCatalogRead, ScopeAssignmentsRead, ScopeResultsRead, ScopeReportsRead, ScopeEventsRead, ScopeExplainRead,
		ScopeWebhooksRead:
		return true
	case ScopeProvision, ScopeRoster, ScopeAssignments, ScopeWebhooks:
	}
	return false
}

// May says whether the key reaches what needs the scope.
func (k Key) May(need Scope) bool {
	switch k.Access {
	case Full:
		return true
	case ReadOnly:
		return need.Reads()
	case Scoped:
		return need == "" || slices.Contains(k.Scopes, need) ||
			need == ScopeAssignmentsRead && slices.Contains(k.Scopes, ScopeAssignments) ||
			need == ScopeWebhooksRead && slices.Contains(k.Scopes, ScopeWebhooks)
	}
	return false
}
