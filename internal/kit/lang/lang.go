// Package lang writes what people read in their own language.
//
// The texts are in catalogs, one file of the folder texts a language, in the form of go-i18n's JSON: a key has a text, or
// the text's plural forms. English is the source, and has every key; a test holds the others to it. A text names what is
// put into it ({{.Email}}), so that a translation may have it in another place.
//
//	t := lang.Of("ar")
//	t.T("access.until", "End", t.Day(end))
//	t.N("link.hours", hours)
package lang

import (
	"embed"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	parser "github.com/nicksnyder/go-i18n/v2/i18n/template"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// English is the code of the language in which every text was written first. It is everybody's who has no other.
const English = "en"

//go:embed texts/*.json
var files embed.FS

// Texts are those of one language.
type Texts struct {
	code     string
	messages *i18n.Localizer
	numbers  *message.Printer
	digits   *strings.Replacer // of ASCII into the language's own; nil: they are
	wrap     func(string) string
}

var (
	bundle      = i18n.NewBundle(language.English)
	keys        = map[string]bool{} // of English
	all         = load()
	matcher     = language.NewMatcher(tags(all))
	rightToLeft = []string{"ar", "fa", "he", "ur"}

	strict = &parser.TextParser{Option: "missingkey=error"}
)

// load reads the catalogs, English first.
func load() []*Texts {
	entries, err := files.ReadDir("texts")
	if err != nil {
		panic(err) // it is embedded
	}
	codes := []string{English}
	for _, entry := range entries {
		bytes, err := files.ReadFile("texts/" + entry.Name())
		if err != nil {
			panic(err) // likewise
		}
		catalog, err := bundle.ParseMessageFileBytes(bytes, entry.Name())
		if err != nil {
			panic(fmt.Sprintf("lang: %s: %v", entry.Name(), err))
		}
		code := strings.TrimSuffix(entry.Name(), path.Ext(entry.Name()))
		if code != English {
			codes = append(codes, code)
			continue
		}
		for _, m := range catalog.Messages {
			keys[m.ID] = true
		}
	}
	found := make([]*Texts, len(codes))
	for i, code := range codes {
		found[i] = newTexts(code)
	}
	return found
}

func newTexts(code string) *Texts {
	t := &Texts{code: code, messages: i18n.NewLocalizer(bundle, code), numbers: message.NewPrinter(language.Make(code))}
	var pairs []string
	for n := range 10 {
		if own := t.numbers.Sprint(n); own != strconv.Itoa(n) {
			pairs = append(pairs, strconv.Itoa(n), own)
		}
	}
	if pairs != nil {
		t.digits = strings.NewReplacer(pairs...)
	}
	return t
}

func tags(of []*Texts) []language.Tag {
	found := make([]language.Tag, len(of))
	for i, t := range of {
		found[i] = language.Make(t.code)
	}
	return found
}

// All are the texts of every language, English first.
func All() []*Texts { return slices.Clone(all) }

// Known says whether there is a catalog of the language.
func Known(code string) bool {
	return slices.ContainsFunc(all, func(t *Texts) bool { return t.code == code })
}

// Of are the texts of the first of the languages that has any, and else those of English.
func Of(codes ...string) *Texts {
	for _, code := range codes {
		for _, t := range all {
			if t.code == code {
				return t
			}
		}
	}
	return all[0]
}

// Accepted is the code of the language that suits an Accept-Language header best; "" where none does.
func Accepted(header string) string {
	if len(header) > 1000 {
		return "" // no browser's
	}
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil || len(wanted) == 0 {
		return ""
	}
	_, i, confidence := matcher.Match(wanted...)
	if confidence == language.No {
		return ""
	}
	return all[i].code
}

// Pseudo are English texts within ⟦ and ⟧, for tests that look for what is in no catalog.
func Pseudo() *Texts {
	t := *all[0]
	t.code = "en-XA"
	t.wrap = func(text string) string { return "⟦" + text + "⟧" }
	return &t
}

// Outside is what of a text in the pseudo-language is in no catalog.
func Outside(text string) string {
	var b strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == '⟦':
			depth++
		case r == '⟧':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Code is the language's, as HTML and HTTP have it.
func (t *Texts) Code() string { return t.code }

// Name is what the language calls itself.
func (t *Texts) Name() string { return t.text("language.name", nil, nil) }

// RightToLeft says whether the language is written from right to left.
func (t *Texts) RightToLeft() bool { return slices.Contains(rightToLeft, t.code) }

// Dir is the direction in which the language is written, as HTML has it.
func (t *Texts) Dir() string {
	if t.RightToLeft() {
		return "rtl"
	}
	return "ltr"
}

// T is the text of the key. Names and values of what is put into it take turns. It panics at a key that no catalog has, and
// where something is not put in: tests look for all that the code names.
func (t *Texts) T(key string, put ...any) string {
	return t.finish(t.text(key, nil, t.values(put, nil)))
}

// N is the text of the key for so many, which it names Count.
func (t *Texts) N(key string, n int, put ...any) string {
	values := t.values(put, nil)
	values["Count"] = t.numbers.Sprint(n)
	return t.finish(t.text(key, n, values))
}

// H is T as HTML. What is put in as template.HTML stays, and all else is escaped, the text itself, too. The <a> of a text
// becomes the tag that is put in by that name.
func (t *Texts) H(key string, put ...any) template.HTML {
	var marked []string
	values := t.values(put, func(markup template.HTML) string {
		mark := "\ue000" + strconv.Itoa(len(marked)) + "\ue001" // stands for it until the text around it is escaped
		marked = append(marked, mark, string(markup))
		return mark
	})
	text := template.HTMLEscapeString(t.finish(t.text(key, nil, values)))
	if tag, linked := values["a"].(string); linked {
		text = strings.Replace(text, "&lt;a&gt;", strings.Trim(tag, fsi+pdi), 1)
		text = strings.Replace(text, "&lt;/a&gt;", "</a>", 1)
	}
	return template.HTML(strings.NewReplacer(marked...).Replace(text)) //nolint:gosec // escaped above
}

// private are the characters that H marks with; nobody types them.
var private = strings.NewReplacer("\ue000", "", "\ue001", "")

// values turns names and values that take turns into what a text asks for; markup, where it is not nil, stands in for HTML.
func (t *Texts) values(put []any, markup func(template.HTML) string) map[string]any {
	values := make(map[string]any, len(put)/2+1)
	for i := 0; i+1 < len(put); i += 2 {
		text := private.Replace(fmt.Sprint(put[i+1]))
		if tag, is := put[i+1].(template.HTML); is && markup != nil {
			text = markup(tag)
		}
		values[fmt.Sprint(put[i])] = t.apart(text)
	}
	return values
}

// FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE.
const fsi, pdi = "\u2068", "\u2069"

// apart keeps a value in its own direction within a text from right to left. Figures need none of it.
func (t *Texts) apart(value string) string {
	if !t.RightToLeft() || !strings.ContainsFunc(value, func(r rune) bool { return unicode.IsLetter(r) || unicode.Is(unicode.Co, r) }) {
		return value
	}
	return fsi + value + pdi
}

func (t *Texts) finish(text string) string {
	if t.wrap != nil {
		return t.wrap(text)
	}
	return text
}

func (t *Texts) text(key string, count any, values map[string]any) string {
	if values == nil {
		values = map[string]any{}
	}
	text, err := t.messages.Localize(&i18n.LocalizeConfig{MessageID: key, PluralCount: count, TemplateData: values, TemplateParser: strict})
	if err != nil && text == "" {
		panic(fmt.Sprintf("lang: %s in %s: %v", key, t.code, err))
	}
	return text
}

// Has says whether the catalogs have the key.
func Has(key string) bool { return keys[key] }

// Word is a word of the platform's own, such as "Mock exam" or a section's name, in the language; one that has no
// translation stays as it is.
func (t *Texts) Word(english string) string {
	key := "word." + strings.ToLower(strings.ReplaceAll(english, " ", "_"))
	if english == "" || !Has(key) {
		return english
	}
	if t.code == English {
		return t.finish(english) // with the capitals that it has where it stands
	}
	return t.T(key)
}

// Digits is a text with the language's own digits. It is for scores, times and the like; numbers that count something are
// N's.
func (t *Texts) Digits(text string) string {
	if t.digits == nil {
		return t.finish(text)
	}
	runes := []rune(text)
	for i, r := range runes {
		if r == '.' && i > 0 && i+1 < len(runes) && isDigit(runes[i-1]) && isDigit(runes[i+1]) {
			runes[i] = '٫'
		}
	}
	return t.digits.Replace(string(runes))
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// Score is a score's label, such as "Band 6.5", in the language.
func (t *Texts) Score(label string) string {
	if band, is := strings.CutPrefix(label, "Band "); is {
		return t.T("score.band", "Score", t.Digits(band))
	}
	return t.Digits(label)
}
