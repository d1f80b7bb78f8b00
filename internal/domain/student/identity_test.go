package student

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Reference: students#student-fields.
func TestParseEmail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Email{
		"ana@institute.org":                           "ana@institute.org",
		"  Ana.LOPEZ+Trial@Institute.ORG\t":           "ana.lopez+trial@institute.org",
		"jose\u0301@correo.es":                        "jos\u00e9@correo.es", // decomposed é
		"ana@BÜCHER.example":                          "ana@xn--bcher-kva.example",
		"ana@xn--bcher-kva.example":                   "ana@xn--bcher-kva.example",
		"ana@localhost":                               "ana@localhost",
		"o'brien_1/x@a-b.co.uk":                       "o'brien_1/x@a-b.co.uk",
		"学生@例え.jp":                                    "学生@xn--r8jz45g.jp",
		"":                                            "",
		"ana":                                         "",
		"@institute.org":                              "",
		"ana@":                                        "",
		"ana@institute":                               "",
		"ana@10.0.0.1":                                "",
		"ana@[10.0.0.1]":                              "",
		"ana@institute..org":                          "",
		"ana@-institute.org":                          "",
		"ana@insti_tute.org":                          "",
		"ana@institute.org.":                          "",
		".ana@institute.org":                          "",
		"ana.@institute.org":                          "",
		"a..b@institute.org":                          "",
		"a b@institute.org":                           "",
		"a@b@institute.org":                           "",
		"Ana <ana@institute.org>":                     "",
		"ana@institute.org,ben@institute.org":         "",
		"\"ana\"@institute.org":                       "",
		"a\u200bna@institute.org":                     "",
		"an\x00a@institute.org":                       "",
		"ana\n@institute.org":                         "",
		strings.Repeat("a", 65) + "@x.org":            "",
		"a@" + strings.Repeat("b", 64) + ".org":       "",
		"a@" + strings.Repeat("bbbbbbb.", 32) + "org": "",
	} {
		got, err := ParseEmail(text)
		check.Equal(t, "the address", got, want, "%q: %v", text, err)
		if want != "" {
			check.NoError(t, err, "%q", text)
		} else if check.True(t, "it is refused", err != nil, "%q", text) {
			check.Equal(t, "kind", fault.KindOf(err), fault.Invalid, "%q: %v", text, err)
		}
	}
}

func FuzzParseEmail(f *testing.F) {
	for _, s := range []string{"ana@institute.org", "ÄÖ@BÜCHER.example", "\u0130@x.org", "a@x.org\u0301", "ǅ@ﬀ.org"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEmail(text)
		if err != nil {
			return
		}
		again, err := ParseEmail(string(e))
		check.NoError(check.Now(t), err, "reading %q again, of %q", e, text)
		check.Equal(check.Now(t), "the address read again", again, e, "%q", text)
		shouted, err := ParseEmail(" " + strings.ToUpper(text) + " ")
		if err == nil && strings.ToLower(strings.ToUpper(text)) == text {
			check.Equal(check.Now(t), "the address in capitals", shouted, e, "%q", text)
		}
		name, err := ParseUsername(usernameFor(e))
		check.NoError(check.Now(t), err, "the username derived from %q: %q", e, usernameFor(e))
		check.Equal(check.Now(t), "username", name, usernameFor(e), "derived from %q", e)
	})
}

// Reference: limits#fields.
func TestParseUsername(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" Ana.Lopez ":            "Ana.Lopez",
		"ana@x.org":              "ana@x.org",
		"a+b-c_9":                "a+b-c_9",
		"Ána":                    "Ána",
		"":                       "",
		"ana lopez":              "",
		"ana/lopez":              "",
		"ana\x00":                "",
		strings.Repeat("ü", 150): strings.Repeat("ü", 150),
		strings.Repeat("ü", 151): "",
	} {
		got, err := ParseUsername(text)
		check.Equal(t, "username", got, want, "%q: %v", text, err)
		check.Equal(t, "it is refused", err != nil, want == "", "%q: %v", text, err)
	}
}

func TestDerivedUsernames(t *testing.T) {
	t.Parallel()
	if got := usernameFor("o'brien/x@a-b.org"); got != "o_brien_x@a-b.org" {
		t.Errorf("derived %q", got)
	}
	long := usernameFor(Email(strings.Repeat("é", 30) + "@" + strings.Repeat("a.", 100) + "org"))
	taken := map[string]bool{"ana": true, "ana-2": true, strings.ToLower(long): true}
	if got := freeUsername("Ana", taken); got != "Ana-3" {
		t.Errorf("free = %q", got)
	}
	if got := freeUsername(long, taken); check.Equal(t, "number of characters", utf8.RuneCountInString(got), 150, "free = %q", got) {
		check.True(t, "the name ends with its number", strings.HasSuffix(got, "-2"), "free = %q", got)
	}
}

// Tries at a name that leads nowhere are counted as if it were an account's: by one text for all of
// its forms, and for the username that would be derived from it.
func TestSpellingsOfAName(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"ana@institute.org":         {"ana@institute.org", " ANA@Institute.org\t", "ａｎａ＠institute．org", "ⓐna@institute.org"},
		"o_brien@institute.org":     {"o'brien@institute.org", "O_Brien@institute.org", "ｏ'brien@institute.org"},
		"jos\u00e9@correo.es":       {"jose\u0301@correo.es", "JOS\u00c9@correo.es"},
		"ana@xn--bcher-kva.example": {"ana@bücher.example", "ana@BÜCHER.example", "ana@xn--bcher-kva.example"},
		"ana.lopez":                 {"Ana.Lopez", "ＡＮＡ．ＬＯＰＥＺ", "ana.lopez "},
		"":                          {"", " "},
	} {
		for _, name := range names {
			check.Equal(t, "the spelling", spelling(name), want, "of %q", name)
		}
	}
	known, unknown := Candidate{Account{ID: 7}, "ana"}, Candidate{Account{}, "ana"}
	check.Equal(t, "the name's key", known.Keys()[0], unknown.Keys()[0], "whether there is an account or not")
	check.True(t, "the account's key is another", known.Keys()[1] != unknown.Keys()[1], "%v", known.Keys())
}

// Reference: provisioning#password-modes.
func TestCheckPassword(t *testing.T) {
	t.Parallel()
	for password, code := range map[string]string{
		"Tr0ub4dor&3x":                 "",
		"correct horse battery":        "",
		"пароль-для-аны":               "",
		"a1b2c3d":                      "password_too_short",
		"ääääöööüüß":                   "password_too_uniform",
		"aaaaaaaa":                     "password_too_uniform",
		"xyxyxyxyxyxyxyxyzW":           "password_too_uniform",
		"xyxyxyxyxyxyxyxyzW!":          "",
		"e\u0301e\u0301e\u0301e\u0301": "password_too_short", // four characters, as they are hashed
		strings.Repeat("xY3", 43):      "password_too_long",
		"2938475610":                   "password_only_digits",
		"password1":                    "password_too_common",
		"PassWord1":                    "password_too_common",
		"qwertyuiop":                   "password_too_common",
		"analopez1":                    "password_too_similar",
		"Lopez.Ana99":                  "",
		"ana.lopez@institute.org":      "password_too_similar",
		"institute":                    "password_too_similar",
		"MaryLopez":                    "password_too_similar",
		"\x01\x02\x03\x04abcdefgh":     "password_invalid",
		"abcdefg\xff":                  "password_invalid",
		"two\u2028lines":               "password_invalid",
		" correct horse":               "password_outer_blanks",
		"correct horse ":               "password_outer_blanks",
		"correct horse\u00a0":          "password_outer_blanks",
		"          ":                   "password_outer_blanks",
		"correct  horse":               "",
	} {
		err := CheckPassword(password, "ana.lopez@institute.org", "ana-the-first", "Mary", "Lopez")
		if code == "" {
			check.NoError(t, err, "%q", password)
			continue
		}
		if check.True(t, "the fault is "+code, fault.Has(err, code), "%q: %v", password, err) {
			check.Lacks(t, "the fault", err.Error(), password, "it shows the password")
		}
	}
}

// Reference: provisioning#password-modes.
func TestAPasswordIsOneHoweverItsAccentsAreTyped(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "caf\u00e9 del sur", "cafe\u0301 del sur"
	for _, typed := range [][2]string{{composed, decomposed}, {decomposed, composed}} {
		hash, err := HashPassword(t.Context(), typed[0])
		if err != nil {
			t.Fatal(err)
		}
		if same, err := samePassword(t.Context(), typed[1], hash); check.NoError(t, err, "%+q set, %+q typed: %v, %v", typed[0], typed[1], same, err) {
			check.True(t, "same", same, "%+q set, %+q typed: %v, %v", typed[0], typed[1], same, err)
		}
	}
}

func TestGeneratedPasswordsPassTheRules(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 500 {
		p := GeneratePassword()
		if err := CheckPassword(p, "ana@institute.org", "ana", "Ana", "Lopez"); check.NoError(check.Now(t), err, "%q: %v, seen before: %v", p, err, seen[p]) {
			check.False(check.Now(t), "the password was made before", seen[p], "%q: %v, seen before: %v", p, err, seen[p])
		}
		seen[p] = true
	}
}

func TestHashesAreArgon2idAndCompare(t *testing.T) {
	t.Parallel()
	hash, err := HashPassword(t.Context(), "Tr0ub4dor&3x")
	check.NoError(check.Now(t), err, "%v %v", hash, err)
	check.True(check.Now(t), "the hash is of Argon2id", strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$"), "%v %v", hash, err)
	for password, want := range map[string]bool{"Tr0ub4dor&3x": true, "Tr0ub4dor&3": false, "": false} {
		if got, err := samePassword(t.Context(), password, hash); check.Equal(t, "got", got, want, "samePassword(%q) = %v, %v", password, got, err) {
			check.NoError(t, err, "samePassword(%q) = %v, %v", password, got, err)
		}
	}
	if got, err := samePassword(t.Context(), "", ""); check.False(t, "got", got, "no password matches the empty one: %v, %v", got, err) {
		check.NoError(t, err, "no password matches the empty one: %v, %v", got, err)
	}
}
