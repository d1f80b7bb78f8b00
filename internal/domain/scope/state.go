package scope

// State is what a person decided about an enrollment; it is stored.
type State string

// The states of an enrollment.
const (
	Running   State = "running"
	Suspended State = "suspended"
	Dropped   State = "dropped"
	Completed State = "completed"
)
