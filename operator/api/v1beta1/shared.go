package v1beta1

// LabelOrganization is the label of a Namespace that names the organization whose resources it may have.
const LabelOrganization = "registrar.dev/organization"

// EventType is the name of an event that a URL or a replay can select.
//
// +kubebuilder:validation:Enum=result.final;student.joined;student.left;enrollment.created;enrollment.updated;enrollment.expiring;enrollment.ended;assignment.created;assignment.overdue
type EventType string

// DeletionPolicy says what becomes of what a resource stands for when the resource is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// The deletion policies.
const (
	Retain DeletionPolicy = "Retain" // it stays, and people manage it from then on
	Delete DeletionPolicy = "Delete" // it is removed, with what belongs to it
)

// The conditions of all kinds. While Ready is not True, one of the other two is there, as kstatus has it.
const (
	ConditionReady       = "Ready"       // it is as spec says
	ConditionReconciling = "Reconciling" // it will be: the operator is at it, or waits for something
	ConditionStalled     = "Stalled"     // somebody has to act, waiting does not help
)

// The reasons of conditions that all kinds have. They are stable.
const (
	ReasonNamespaceNotAllowed  = "NamespaceNotAllowed"
	ReasonNamespaceNotServed   = "NamespaceNotServed" // the operator serves the namespace no more, or not yet
	ReasonOrganizationNotFound = "OrganizationNotFound"
	ReasonInvalidSpec          = "InvalidSpec"
	ReasonSecretConflict       = "SecretConflict"
	ReasonDatabaseUnavailable  = "DatabaseUnavailable"
	ReasonDeleting             = "Deleting"
	ReasonReconcileError       = "ReconcileError" // what went wrong is in the message; it is tried again
)
