package signin

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/account"
)

// What else a session holds: the browser's own name, the client address and the moment in which it
// began, those of the last request, and the last moment in which the person gave the password (RFC 3339).
const (
	agentKey    = "agent"
	fromKey     = "from"
	beganKey    = "began"
	usedKey     = "used"
	usedFromKey = "used_from"
	passwordKey = "password_at"
	factorKey   = "factor" // whether the person gave a second factor in it, or in the one that it follows
)

// maxAgent bounds what is kept of a browser's name, in bytes.
const maxAgent = 400

// Recent is how long a password that was given opens what asks for it again.
const Recent = 10 * time.Minute

// note keeps what the person can later recognize the session by.
func (s *Sessions) note(ctx context.Context) {
	v := visitOf(ctx)
	s.manager.Put(ctx, agentKey, strings.ToValidUTF8(v.agent[:min(len(v.agent), maxAgent)], ""))
	s.manager.Put(ctx, fromKey, v.from)
	s.manager.Put(ctx, beganKey, s.now().UTC().Format(time.RFC3339))
	s.noteUse(ctx)
}

// noteUse keeps the request as the last one of a session in which somebody is signed in. The session is
// stored again after each request in any case.
func (s *Sessions) noteUse(ctx context.Context) {
	if s.manager.Exists(ctx, beganKey) {
		s.manager.Put(ctx, usedKey, s.now().UTC().Format(time.RFC3339))
		s.manager.Put(ctx, usedFromKey, visitOf(ctx).from)
	}
}

// Visit is the request's browser and where it is.
func Visit(ctx context.Context) account.Visit {
	v := visitOf(ctx)
	return account.Visit{Browser: describe(v.agent), Address: v.from, Session: v.found}
}

// NotePassword remembers that the person has just shown who they are: by the password, and a factor
// where they have one.
func (s *Sessions) NotePassword(ctx context.Context) {
	s.manager.Put(ctx, passwordKey, s.now().UTC().Format(time.RFC3339))
}

// NoteFactor remembers that the person has a second factor, which they have just shown.
func (s *Sessions) NoteFactor(ctx context.Context) { s.manager.Put(ctx, factorKey, true) }

// GaveFactor says whether they gave one in this session, or in the one that it follows.
func (s *Sessions) GaveFactor(ctx context.Context) bool { return s.manager.GetBool(ctx, factorKey) }

// GavePassword says whether the person did that in this session within Recent.
func (s *Sessions) GavePassword(ctx context.Context) bool {
	at, err := time.Parse(time.RFC3339, s.manager.GetString(ctx, passwordKey))
	return err == nil && s.now().Sub(at) < Recent
}

// Browser is one in which a person is signed in.
type Browser struct {
	Name    string    // in plain words: "Firefox on Windows"
	Program string    // "Firefox"; "" when it is not known
	System  string    // "Windows", "an iPhone"; likewise
	From    string    // the client's address of the last request, or its network; "" when it is not known
	Since   time.Time // zero when it is not known
	Used    time.Time // of the last request; zero when it is not known
	ID      string    // for EndOne
	Current bool      // the one of the request
}

// Browsers lists where the person of the request is signed in, this browser first, then the last used.
// A session that proves an organization alone sees its like: it must not tell of what others know.
func (s *Sessions) Browsers(ctx context.Context) ([]Browser, error) {
	open, err := student.Sessions{DB: s.db}.List(ctx, visitOf(ctx).found)
	browsers := make([]Browser, len(open))
	for i, o := range open {
		began, _ := time.Parse(time.RFC3339, o.Began) // zero for one from before this was kept
		used, _ := time.Parse(time.RFC3339, o.Used)   // likewise
		if o.Current {
			used, o.UsedFrom = s.now(), visitOf(ctx).from // by this request, which is not stored yet
		}
		browsers[i] = Browser{Name: describe(o.Agent), Program: first(programs, o.Agent), System: first(systems, o.Agent), From: cmp.Or(o.UsedFrom, o.From), Since: began, Used: used, ID: o.Name, Current: o.Current}
	}
	return browsers, err
}

// EndOthers signs the person of the request out in all other browsers that Browsers lists, and says
// in how many.
func (s *Sessions) EndOthers(ctx context.Context) (int64, error) {
	return student.Sessions{DB: s.db}.EndOthers(ctx, visitOf(ctx).found)
}

// EndOne signs the person of the request out in one of the other browsers that Browsers lists, and says
// whether it was signed in.
func (s *Sessions) EndOne(ctx context.Context, browser string) (bool, error) {
	return student.Sessions{DB: s.db}.EndOne(ctx, visitOf(ctx).found, browser)
}

// programs and systems are looked for in this order: most programs also call themselves Safari, and
// some Chrome.
var (
	programs = [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}}
	systems = [][2]string{{"iPhone", "an iPhone"}, {"iPad", "an iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"CrOS", "a Chromebook"},
		{"Macintosh", "a Mac"}, {"Linux", "Linux"}}
)

// describe says in plain words which browser calls itself so.
func describe(agent string) string {
	program, system := first(programs, agent), first(systems, agent)
	switch {
	case program != "" && system != "":
		return program + " on " + system
	case program != "":
		return program
	case system != "":
		return "A browser on " + system
	}
	return "An unknown browser"
}

func first(names [][2]string, agent string) string {
	for _, n := range names {
		if strings.Contains(agent, n[0]) {
			return n[1]
		}
	}
	return ""
}
