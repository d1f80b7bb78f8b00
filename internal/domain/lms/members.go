package lms

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Member is one of the people of a course.
type Member struct {
	ID        string // as the LMS calls the person, in launches too
	Email     string // "": the LMS does not say it
	FirstName string
	LastName  string
	Role      string // in the word that rosters have for it, or else as the LMS says
	Active    bool
}

// The words for roles that a roster takes.
const (
	RoleStudent = "student"
	RoleTeacher = "teacher"
	RoleAdmin   = "administrator"
)

// maxMemberText cuts a member's texts far above what a roster takes, so that it still says what is wrong with them.
const maxMemberText = 1000

// ReadMembers reads a page of the people of a course (Names and Role Provisioning Services 2.0). It takes a page as a whole or not at
// all: people who are missing count as having left. Its errors say what is wrong, for people.
func ReadMembers(text []byte, course string) ([]Member, error) {
	var page struct {
		Context struct {
			ID string `json:"id"`
		} `json:"context"`
		Members *[]struct {
			Status     string   `json:"status"`
			Name       string   `json:"name"`
			GivenName  string   `json:"given_name"`
			FamilyName string   `json:"family_name"`
			Email      string   `json:"email"`
			ID         string   `json:"user_id"`
			Roles      []string `json:"roles"`
		} `json:"members"`
	}
	switch err := json.Unmarshal(text, &page); {
	case err != nil:
		return nil, errors.New("it is no list of members (application/vnd.ims.lti-nrps.v2.membershipcontainer+json)")
	case page.Members == nil:
		return nil, errors.New("it has no members")
	case page.Context.ID != "" && page.Context.ID != course:
		return nil, fmt.Errorf("it is of another course (%s)", line(page.Context.ID, 60))
	}
	all := make([]Member, 0, len(*page.Members))
	for n, m := range *page.Members {
		who := line(m.ID, maxMemberText)
		if who == "" {
			return nil, fmt.Errorf("member %d has no user_id", n+1)
		}
		first, last := m.GivenName, m.FamilyName
		if strings.TrimSpace(first) == "" {
			var rest string
			if first, rest, _ = strings.Cut(strings.TrimSpace(m.Name), " "); strings.TrimSpace(last) == "" {
				last = rest
			}
		}
		role := memberRole(m.Roles)
		all = append(all, Member{ID: who, Email: line(m.Email, maxMemberText), FirstName: line(first, maxMemberText),
			LastName: line(last, maxMemberText), Role: role, Active: m.Status == "" || strings.EqualFold(m.Status, "Active")})
	}
	return all, nil
}

// memberRoles are the roles in a course, the ones that count before others first: a student who also teaches is a student, as with
// launches.
var memberRoles = []struct{ name, word string }{
	{"learner", RoleStudent},
	{"administrator", RoleAdmin},
	{"instructor", RoleTeacher}, // teaching assistants are called Instructor, too
	{"teachingassistant", RoleTeacher},
	{"contentdeveloper", RoleTeacher},
	{"manager", RoleTeacher},
	{"officer", RoleTeacher},
	{"mentor", RoleTeacher},
}

// memberRole is the word for somebody's roles, which LMSes send as words or as addresses that end with them; roles of the
// institution or the system, beside those of the course, do not count.
func memberRole(roles []string) string {
	words := map[string]bool{}
	for _, role := range roles {
		role = strings.ToLower(role)
		if strings.Contains(role, "/institution/") || strings.Contains(role, "/system/") {
			continue
		}
		main, sub, _ := strings.Cut(role, "#") // …/membership#Learner, …/membership/Instructor#TeachingAssistant
		words[sub], words[main[strings.LastIndexByte(main, '/')+1:]] = true, true
	}
	for _, r := range memberRoles {
		if words[r.name] {
			return r.word
		}
	}
	if len(roles) == 0 {
		return "none"
	}
	return line(roles[0], 100)
}
