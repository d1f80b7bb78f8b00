package roster

// Since is what has happened since a change was carried out.
type Since struct {
	AccountSame bool // nobody has written to the account
	MemberSame  bool // nor to the membership
	Used        bool // the person has signed in, or chosen a password
	Active      bool
	Enrolled    bool // the person has access to a course of the organization, or will have it
	Shared      bool // the person is staff, or belongs to another organization too; where ChangeProfile
}

// DecideUndo returns the change that takes another one of the file back, where nothing has changed since.
// Nobody is deleted: a person whom the change created becomes inactive.
func DecideUndo(file string, c Change, s Since) (Change, []Issue) {
	t := issues{file: file, line: c.Line, person: c.ExternalID}
	kept := func(what string) {
		t.add(NotManaged, Warning, "%s has changed since the import, or is used here or elsewhere, and stays", what)
	}
	enrolled := func() bool {
		if s.Enrolled {
			t.add(NotManaged, Warning, "the membership stays active: the student has a course here that is not over")
		}
		return s.Enrolled
	}
	back := c
	back.Action, back.Effects = Update, 0
	switch {
	case c.Effects.Has(CreateMembership):
		switch {
		case !s.MemberSame || !s.Active || s.Used:
			kept("the membership")
		case !enrolled():
			back.Action, back.Effects = Leave, Deactivate|MarkAbsent
		}
		return back, t.all
	case c.Effects.Has(Deactivate):
		if !s.MemberSame || s.Active {
			kept("the membership")
			return back, t.all
		}
		back.Effects = Activate | MarkPresent
	case c.Effects.Has(Activate):
		if !s.MemberSame || !s.Active || s.Used {
			kept("the membership")
			return back, t.all
		}
		if enrolled() {
			return back, t.all
		}
		back.Action, back.Effects = Leave, Deactivate|MarkAbsent
	case c.Effects.Has(MarkAbsent):
		back.Effects = MarkPresent
	case c.Effects.Has(MarkPresent):
		back.Effects = MarkAbsent
	case c.Effects.Has(CreateIdentity):
		back.Effects = DropIdentity
	}
	if c.Effects.Has(ReplaceIdentity) {
		back.Effects |= ReplaceIdentity
		back.ExternalID, back.BeforeID = c.BeforeID, c.ExternalID
	}
	if c.Effects.Has(ChangeProfile) {
		if !s.AccountSame || s.Used || s.Shared {
			kept("the account")
			return back, t.all
		}
		back.Effects |= ChangeProfile
		back.Email, back.FirstName, back.LastName = c.BeforeEmail, c.BeforeFirst, c.BeforeLast
		back.BeforeEmail, back.BeforeFirst, back.BeforeLast = c.Email, c.FirstName, c.LastName
	}
	return back, t.all
}

// Inverse is the change that takes c back. A class that was created stays, empty.
func (c ClassChange) Inverse() ClassChange {
	switch c.Action {
	case AddSeat:
		c.Action = RemoveSeat
	case RemoveSeat:
		c.Action = AddSeat
	case RenameClass:
		c.Name, c.Before = c.Before, c.Name
	case RescheduleClass:
		before := Days{c.BeforeStartDate, c.BeforeEndDate}
		c.BeforeStartDate, c.BeforeEndDate, c.Days = c.StartDate, c.EndDate, before
	case CreateClass:
	}
	return c
}
