package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RosterSourceFinalizer keeps a resource until its source is left to the platform.
const RosterSourceFinalizer = "registrar.dev/roster-source"

// The annotations of a RosterSource. Each has the number of a held run, and acts once for a value.
const (
	AnnotationApproveRun = "registrar.dev/approve-run" // plan it again and apply it
	AnnotationDiscardRun = "registrar.dev/discard-run" // end it without applying it
)

// RosterApproval says which snapshots of a source wait for a person.
//
// +kubebuilder:validation:Enum=Guarded;Always
type RosterApproval string

// The approvals.
const (
	ApprovalGuarded RosterApproval = "Guarded" // those that a guard stops
	ApprovalAlways  RosterApproval = "Always"
)

// RosterSourceSpec is what should be true of a system that sends rosters of an organization.
type RosterSourceSpec struct {
	// className says which operator manages the resource: the one with this class, or, when it is empty, the one without a
	// class. It cannot be changed later.
	//
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="className: cannot be changed; delete this resource and create another"
	ClassName string `json:"className,omitempty"`

	// organization is the slug of the organization. The namespace must be one that the Organization resource allows or,
	// where none says, carry the slug in the label registrar.dev/organization.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="organization: use the organization's slug, lower-case letters, digits and hyphens"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="organization: a source stays with its organization; delete this resource and create another"
	Organization string `json:"organization,omitempty"`

	// source is the label with which the system sends its rosters. It cannot be changed later. A source that has sent
	// rosters already is taken over with its people.
	//
	// +optional
	// +default="default"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.trim() == self && !self.matches('[[:cntrl:]]')",message="source: leave out the spaces around it, and what cannot be shown"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="source: cannot be changed; delete this resource and create another"
	Source string `json:"source,omitempty"`

	// authoritativeEnabled says whether the source may send authoritative snapshots, after which people who are missing
	// become inactive.
	//
	// +optional
	AuthoritativeEnabled bool `json:"authoritativeEnabled,omitempty"`

	// approval says which snapshots wait for a person: Guarded, those that a guard stops, or Always, each of them.
	//
	// +optional
	// +default="Guarded"
	Approval RosterApproval `json:"approval,omitempty"`

	// guards say when a snapshot is held although nobody has to approve each.
	//
	// +optional
	Guards RosterGuards `json:"guards,omitzero"`

	// deletionPolicy says what becomes of the settings when this resource is deleted. Delete gives the source those that it
	// has by itself, without authoritative snapshots. Retain leaves them as they are. The people stay in any case.
	//
	// +optional
	// +default="Delete"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// RosterGuards are what holds a snapshot of a source.
type RosterGuards struct {
	// maxLossPercent is the share of the source's people, and of their places in classes, that a snapshot may take away
	// without approval. Without it the usual rule holds a snapshot: more than half, or five and more than a tenth.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxLossPercent *int32 `json:"maxLossPercent,omitempty"`
}

// The conditions and reasons of a RosterSource, beside those that all kinds have. They are stable.
const (
	ConditionRunHeld       = "RunHeld"          // a run waits for a person
	ReasonApprovalRequired = "ApprovalRequired" // it does
	ReasonNoRunHeld        = "NoRunHeld"        // none does
	ReasonSourceInUse      = "SourceInUse"      // another resource keeps the source
)

// RosterSourceStatus is what the operator last saw.
type RosterSourceStatus struct {
	// conditions say whether the source is as spec says (Ready), whether a run waits for a person (RunHeld), whose message
	// names what to do, and, while it is not Ready, that it will be (Reconciling) or that somebody has to act (Stalled).
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that the conditions speak of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// organizationID is the organization's id in Registrar.
	//
	// +optional
	OrganizationID int64 `json:"organizationID,omitempty"`

	// sourceID is the source's id in Registrar.
	//
	// +optional
	SourceID int64 `json:"sourceID,omitempty"`

	// lastRun is the newest run of the source that is no preview.
	//
	// +optional
	LastRun *RosterRun `json:"lastRun,omitempty"`

	// heldRun is the number of the newest run that waits for a person; 0: none does.
	//
	// +optional
	HeldRun int64 `json:"heldRun,omitempty"`

	// handled are the values of the annotations that were acted on last.
	//
	// +optional
	Handled HandledRosterTokens `json:"handled,omitzero"`
}

// RosterRun is an import of a roster.
type RosterRun struct {
	// id is the run's number, as the console and the APIs show it.
	//
	// +required
	ID int64 `json:"id"`

	// state is how far the run is: queued, applying, applied, held, discarded, refused or undone.
	//
	// +required
	State string `json:"state"`

	// mode is what the file stands for: additive_only or authoritative_snapshot.
	//
	// +required
	Mode string `json:"mode"`

	// startedAt is when the file was sent.
	//
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// finishedAt is when the run was over, or held; absent before.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// created is how many people the run creates, or has created. Before it is planned the figures are 0.
	//
	// +optional
	Created int32 `json:"created,omitempty"`

	// updated is how many people it changes, those who become inactive included.
	//
	// +optional
	Updated int32 `json:"updated,omitempty"`

	// skipped is how many people stay as they are.
	//
	// +optional
	Skipped int32 `json:"skipped,omitempty"`

	// deactivated is how many people become inactive.
	//
	// +optional
	Deactivated int32 `json:"deactivated,omitempty"`

	// placesAdded is how many places in classes are added.
	//
	// +optional
	PlacesAdded int32 `json:"placesAdded,omitempty"`

	// placesRemoved is how many places in classes are taken away.
	//
	// +optional
	PlacesRemoved int32 `json:"placesRemoved,omitempty"`

	// issues is how many problems and remarks the run has about the file.
	//
	// +optional
	Issues int32 `json:"issues,omitempty"`

	// message is why the file was refused; empty otherwise.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// HandledRosterTokens are the values of a RosterSource's annotations that were acted on last.
type HandledRosterTokens struct {
	// approveRun is that of registrar.dev/approve-run.
	//
	// +optional
	ApproveRun string `json:"approveRun,omitempty"`

	// discardRun is that of registrar.dev/discard-run.
	//
	// +optional
	DiscardRun string `json:"discardRun,omitempty"`
}

// RosterSource is a system that sends rosters of an organization: what it may send, and what waits for a person.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rostersources,shortName=rrs,categories=registrar
// +kubebuilder:selectablefield:JSONPath=`.spec.organization`
// +kubebuilder:selectablefield:JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="Organization",type=string,JSONPath=`.spec.organization`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last run",type=string,JSONPath=`.status.lastRun.state`
// +kubebuilder:printcolumn:name="Held",type=string,JSONPath=`.status.conditions[?(@.type=="RunHeld")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.status.lastRun.startedAt`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type RosterSource struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every resource.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what should be true of the source.
	//
	// +required
	Spec RosterSourceSpec `json:"spec,omitzero"`

	// status is what the operator last saw.
	//
	// +optional
	Status RosterSourceStatus `json:"status,omitzero"`
}

// Observed gives what the status of every kind has: the conditions and the generation that they speak of.
func (s *RosterSource) Observed() (conditions *[]metav1.Condition, generation *int64) {
	return &s.Status.Conditions, &s.Status.ObservedGeneration
}

// RosterSourceList is what a list request answers.
//
// +kubebuilder:object:root=true
type RosterSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RosterSource `json:"items"`
}
