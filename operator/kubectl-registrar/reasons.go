package main

// advice is what a reason of a condition means, and what helps, each in sentences.
type advice struct{ meaning, remedy string }

const (
	nothing = "There is nothing to do."
	itself  = "It resolves itself; there is nothing to do."
)

// advices are by reason, the same for all kinds. docs/operator.md has them, too.
var advices = map[string]advice{
	// All is well.
	"Registered": {"The URL is registered as spec says, and events are delivered to it.", nothing},
	"Managed":    {"The organization is as spec says.", nothing},
	"Issued":     {"The Secret has a key that works.", nothing},
	"Completed":  {"All undelivered events that were found are due again. They are sent and tried like others.", nothing},
	"NoRunHeld":  {"No run of the roster source waits for a person.", nothing},

	// Something waits, and goes on by itself.
	"NotStarted":           {"The replay has not begun; Ready says what it waits for.", itself},
	"Replaying":            {"Events become due again, the oldest first.", itself},
	"SandboxPending":       {"The sandbox is being made or dropped.", itself},
	"ReplayRunning":        {"The URL has another replay, which has to end first.", itself},
	"DatabaseUnavailable":  {"PostgreSQL does not answer the operator, or not within 7 seconds.", "It resolves itself when PostgreSQL answers. Deliveries do not depend on the operator."},
	"OrganizationNotFound": {"The organization does not exist yet.", "It resolves itself within seconds of its creation. Check the slug, or create the Organization."},
	"URLInUse":             {"The organization has this URL already, from the console or from another resource.", "It resolves itself when that one is removed. To take over the URL with its secret and history, set spec.adopt to true."},
	"URLLimitReached":      {"The organization has as many URLs as it may have.", "It resolves itself when one of them is removed."},
	"SlugInUse":            {"Another resource keeps the organization.", "It resolves itself when that one is deleted."},
	"SourceInUse":          {"Another resource keeps the roster source.", "It resolves itself when that one is deleted."},
	"SandboxNotFound":      {"The organization has no sandbox, for which the key is.", "It resolves itself when the sandbox is there: spec.sandbox of the Organization, or the console."},
	"EndpointNotFound":     {"There is no such WebhookEndpoint in the namespace, or it has no URL yet.", "It resolves itself when that one is ready. Check spec.endpoint: a replay cannot be changed, so create another with the right name."},
	"NotRegistered":        {"There is no URL whose deliveries could be on; Ready says why.", "Explain what Ready says."},
	"Deleting":             {"The deletion waits for PostgreSQL, or for what the message says.", "It resolves itself, at the latest when the operator's DELETION_PATIENCE is over."},
	"ReconcileError":       {"Something went wrong in Kubernetes: a quota, an admission policy or missing rights, in its own words.", "The operator tries again by itself. Remove what the message names."},

	// Somebody has to act.
	"ApprovalRequired":    {"A snapshot of the roster source waits for a person.", "Look at it in the console, and approve or discard it there, or by the annotation that the message names."},
	"Suspended":           {"spec.suspend holds the deliveries. Events of that time are kept as skipped.", "Set spec.suspend to false when they should go on, and send what was skipped again: kubectl registrar replay."},
	"SwitchedOff":         {"The URL was switched off after 50 failed attempts in a row, or by somebody in the console; status.switchedOffReason says which. Its events are kept as skipped.", "Repair the receiver, turn the URL on (kubectl annotate --overwrite whe/NAME registrar.dev/turn-on=\"$(date +%s)\"), and send what was skipped again: kubectl registrar replay."},
	"URLSwitchedOff":      {"The URL of the replay is switched off.", "Turn it on first: kubectl annotate --overwrite whe/NAME registrar.dev/turn-on=\"$(date +%s)\"."},
	"Stopped":             {"The URL was switched off or removed before all events were due again.", "Turn the URL on, and create another replay."},
	"NamespaceNotAllowed": {"The namespace may not have resources of this organization.", "Let spec.allowedNamespaces of the Organization select it or, where there is no such resource, label the namespace registrar.dev/organization=SLUG. That is for an administrator."},
	"NamespaceNotServed":  {"The operator's labels do not select the namespace any more, or its rights there are missing. What the resource stands for stays as it is.", "Label the namespace as the operator's watchNamespaceSelector says, or make the RoleBinding that the message asks for. That is for an administrator."},
	"AddressRefused":      {"The address is not public.", "Change spec.url to a public https:// address, or have an administrator allow the network (WEBHOOK_ALLOW_NETWORKS)."},
	"InvalidSpec":         {"spec has a value that only Registrar could check.", "Change the field that the message names."},
	"SecretNotFound":      {"The referenced Secret, or its key, does not exist. The last good one stays in force.", "Create the Secret that spec.signingSecretRef names, with that key."},
	"SecretInvalid":       {"The referenced Secret is no signing secret: 24 to 200 visible ASCII characters. The last good one stays in force.", "Put a value of that form there."},
	"SecretConflict":      {"A Secret of somebody else has the name of the one that the operator makes.", "Rename or delete that Secret."},
	"LastOwner":           {"The organization would have no owner, or none who can sign in while the identity provider is away.", "Leave an owner in spec.staff."},
	"NotConfigured":       {"The operator has no PUBLIC_URL or SANDBOX_DATABASE_URL, which spec needs.", "Have an administrator set it, or take staff or sandbox out of spec."},
}
