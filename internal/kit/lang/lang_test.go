package lang_test

import (
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// read gives a catalog's texts: of each key its forms, which is other alone where it has no plural.
func read(t *testing.T, code string) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("texts", code+".json"))
	check.NoError(check.Now(t), err, "the catalog")
	var raw map[string]any
	check.NoError(check.Now(t), json.Unmarshal(text, &raw), "%s", code)
	catalog := map[string]map[string]string{}
	for key, value := range raw {
		catalog[key] = map[string]string{}
		if plain, is := value.(string); is {
			catalog[key]["other"] = plain
			continue
		}
		for form, text := range value.(map[string]any) {
			catalog[key][form] = text.(string)
		}
	}
	return catalog
}

var put = regexp.MustCompile(`\{\{\.(\w+)\}\}|</?a>`)

// asks lists what a text asks to be put in.
func asks(text string) []string {
	names := put.FindAllString(text, -1)
	slices.Sort(names)
	return slices.Compact(names)
}

// Every catalog has every text, and each asks for the same as in English.
func TestEveryTextIsInEveryLanguage(t *testing.T) {
	t.Parallel()
	english := read(t, lang.English)
	check.True(t, "there are several languages", len(lang.All()) > 2, "")
	for _, texts := range lang.All() {
		own := read(t, texts.Code())
		check.Equal(check.Now(t), "the keys", fmt.Sprint(slices.Sorted(maps.Keys(own))), fmt.Sprint(slices.Sorted(maps.Keys(english))), "%s", texts.Code())
		for key, forms := range own {
			check.Equal(t, "it has forms", len(forms) > 1, len(english[key]) > 1, "%s: %s", texts.Code(), key)
			for form, text := range forms {
				check.True(t, "a text", strings.TrimSpace(text) != "", "%s: %s %s", texts.Code(), key, form)
				want := asks(english[key]["other"])
				if len(forms) > 1 && form != "other" { // "an hour" may stand for "1 hour"
					want = slices.DeleteFunc(want, func(name string) bool { return name == "{{.Count}}" && !strings.Contains(text, name) })
				}
				check.Equal(t, "what it asks for", fmt.Sprint(asks(text)), fmt.Sprint(want), "%s: %s %s: %s", texts.Code(), key, form, text)
			}
		}
		check.Equal(t, "it is marked as English", texts.Name() == "English", texts.Code() == lang.English, "%s", texts.Code())
	}
}

// Plural texts have the forms that the language has, and no others.
func TestPluralTextsHaveTheFormsOfTheirLanguage(t *testing.T) {
	t.Parallel()
	names := map[plural.Form]string{plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other"}
	for _, texts := range lang.All() {
		forms := map[string]bool{}
		for n := range 200 {
			forms[names[plural.Cardinal.MatchPlural(language.Make(texts.Code()), n, 0, 0, 0, 0)]] = true
		}
		want := slices.Sorted(maps.Keys(forms))
		for key, own := range read(t, texts.Code()) {
			if len(own) > 1 {
				check.Equal(t, "the forms", fmt.Sprint(slices.Sorted(maps.Keys(own))), fmt.Sprint(want), "%s: %s", texts.Code(), key)
			}
		}
	}
	for n, want := range map[int]string{0: "لم يبق أي رمز", 1: "بقي رمز واحد", 2: "بقي رمزان", 3: "بقيت ٣ رموز", 11: "بقي ١١ رمزًا", 100: "بقي ١٠٠ رمز"} {
		check.Equal(t, "the text", lang.Of("ar").N("methods.left", n), want, "%d", n)
	}
	check.Equal(t, "the text", lang.Of("hi").N("methods.left", 1), "1 बाकी है", "")
	check.Equal(t, "the text", lang.Of("hi").N("link_asked.hours", 24), "लिंक 24 घंटे तक काम करता है।", "")
	check.Equal(t, "the text", lang.Of("en").N("link_asked.hours", 1), "The link works for an hour.", "")
}

// named finds the keys that templates and programs name.
var named = regexp.MustCompile(`\b(?:t|th|n|label|T|N|H|say)\b[ (]*"([a-z_]+(?:\.[a-z_]+)*)"`)

// What templates and programs name is there, and what is there is named somewhere.
func TestNamedTextsAreThere(t *testing.T) {
	t.Parallel()
	english, used := read(t, lang.English), map[string]bool{}
	var all strings.Builder
	for _, dir := range []string{"../../domain/email", "../../domain/email/templates", "../../../api-server/internal/pages", "../../../api-server/internal/pages/static", "../../../api-server/internal/chart"} {
		files, err := filepath.Glob(dir + "/*")
		check.NoError(check.Now(t), err, "%s", dir)
		for _, file := range files {
			if ext := filepath.Ext(file); strings.HasSuffix(file, "_test.go") || ext != ".go" && ext != ".html" && ext != ".tmpl" {
				continue
			}
			text, err := os.ReadFile(file)
			check.NoError(check.Now(t), err, "%s", file)
			all.Write(text)
			for _, found := range named.FindAllStringSubmatch(string(text), -1) {
				used[found[1]] = true
				check.True(t, "the catalog has the key", english[found[1]] != nil, "%s names %s", file, found[1])
			}
		}
	}
	check.True(t, "texts are found", len(used) > 100, "%d", len(used))
	for key := range english {
		if family, _, _ := strings.Cut(key, "."); slices.Contains([]string{"language", "month", "month_short", "weekday", "date", "word", "score", "fault", "launch"}, family) {
			continue // named by this package, or by codes
		}
		check.Contains(t, "programs and templates", all.String(), `"`+key+`"`, "nothing names %s", key)
	}
}

func TestLanguagesAreNegotiated(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"":                           "",
		"hi":                         "hi",
		"hi-IN,hi;q=0.9,en;q=0.8":    "hi",
		"en-GB,hi;q=0.9":             "en",
		"de-DE,de;q=0.9":             "",
		"de-DE,de;q=0.9,ar-EG;q=0.5": "ar",
		"ar-MA":                      "ar",
		"fr;q=0.9,en;q=0.1":          "en",
		"*":                          "",
		"hi;q=0":                     "",
		"%%%":                        "",
		strings.Repeat("hi,", 1000):  "",
	} {
		check.Equal(t, "the language", lang.Accepted(header), want, "%.60s", header)
	}
	check.Equal(t, "the first that is known", lang.Of("", "de", "hi", "ar").Code(), "hi", "")
	check.Equal(t, "for who has none", lang.Of("xx").Code(), "en", "")
}

func TestDaysAndTimesAreInTheLanguagesForm(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Asia/Kolkata")
	check.NoError(check.Now(t), err, "the zone")
	at := time.Date(2027, time.February, 21, 18, 29, 0, 0, time.UTC)
	for code, want := range map[string][4]string{
		"en": {"21 February 2027", "21 Feb", "21 February 2027, 23:59 IST", "Sunday, 21 February 2027, 23:59 (Asia/Kolkata)"},
		"hi": {"21 फ़रवरी 2027", "21 फ़र॰", "21 फ़रवरी 2027, 23:59 IST", "रविवार, 21 फ़रवरी 2027, 23:59 (Asia/Kolkata)"},
		"ar": {"٢١ فبراير ٢٠٢٧", "٢١ فبراير", "٢١ فبراير ٢٠٢٧، ٢٣:٥٩ \u2068IST\u2069", "الأحد، ٢١ فبراير ٢٠٢٧، ٢٣:٥٩ (\u2068Asia/Kolkata\u2069)"},
	} {
		x := lang.Of(code)
		day := clock.DateOf(2027, time.February, 21)
		check.Equal(t, "the forms", [4]string{x.Day(day), x.ShortDay(day), x.Moment(at, zone), x.Due(at, zone)}, want, "%s", code)
	}
	check.Equal(t, "a score", lang.Of("ar").Score("Band 6.5"), "الدرجة ٦٫٥", "")
	check.Equal(t, "a score", lang.Of("hi").Score("Band 6.5"), "बैंड 6.5", "")
	check.Equal(t, "a score", lang.Of("en").Score("Band 6.5"), "Band 6.5", "")
	check.Equal(t, "a word", lang.Of("hi").Word("Mock exam"), "अभ्यास परीक्षा", "")
	check.Equal(t, "a word of others", lang.Of("hi").Word("Essay <1>"), "Essay <1>", "")
}

// Whatever is put into a text, it is escaped; and it keeps its own direction.
func TestWhatIsPutInIsEscaped(t *testing.T) {
	t.Parallel()
	const evil = "<a href=x>\ue0000\ue001 </a> & {{.Email}}"
	for _, x := range lang.All() {
		got := string(x.H("account.for", "Email", evil))
		check.Lacks(t, "the HTML", got, "<a", "%s", x.Code())
		check.Contains(t, "the HTML", got, "&lt;a href=x&gt;0 &lt;/a&gt; &amp; {{.Email}}", "%s", x.Code())
		got = string(x.H("provider.tell", "Name", evil, "a", template.HTML(`<a href="/sign-in/">`)))
		check.Equal(t, "links", strings.Count(got, "<a "), 1, "%s: %s", x.Code(), got)
		check.Contains(t, "the HTML", got, `<a href="/sign-in/">`, "%s", x.Code())
	}
	check.Equal(t, "an address from right to left", lang.Of("ar").T("account.for", "Email", "a@b.c"), "للحساب \u2068a@b.c\u2069.", "")
}
