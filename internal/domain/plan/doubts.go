package plan

// Doubts are what a call that is refused for other fields leaves unknown of itself. What
// depends on a doubt is not judged, so that every fault that is told is one.
type Doubts struct {
	Unread  []string // settings that were sent and could not be read
	Student bool     // who the student is
	Courses bool     // which courses the call names
	Access  bool     // how long access will last
}
