// Package recording draws what a person types into a terminal, and what that prints, as an SVG that plays by itself: without
// scripts, so that it works wherever pictures do. Nothing in it scrolls and it plays once, so that its last frame is all of it. That is
// what readers see who prefer no motion, and programs that know no animations.
package recording

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// A Step is one command with what it printed. Caption is what the page says before it, "" for nothing.
type Step struct{ Caption, Command, Output string }

// Duration is how long a recording plays.
const Duration = time.Minute

// The size of the terminal and of its letters, these in pixels.
const (
	columns, maxRows = 100, 42
	letter, row      = 8.4, 19.0
	left, top        = 18.0, 52.0
)

var (
	block = regexp.MustCompile("(?ms)([^\n]+(?:\n[^\n]+)*)\n\n```sh\n(.*?)^```$")
	marks = regexp.MustCompile("`|\\*\\*|\\]\\([^)]*\\)|\\[")
)

// Steps are the commands of a Markdown page, in order, each block's first with the paragraph before it as its caption.
func Steps(page string) (steps []Step) {
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		for i, command := range Commands(m[2]) {
			step := Step{Command: command}
			if i == 0 {
				step.Caption = strings.Join(strings.Fields(marks.ReplaceAllString(m[1], "")), " ")
			}
			steps = append(steps, step)
		}
	}
	return steps
}

// Commands are those of a script: lines that continue no other, with those that do.
func Commands(script string) (commands []string) {
	continues := false
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case continues:
			commands[len(commands)-1] += "\n" + line
		case strings.TrimSpace(line) != "":
			commands = append(commands, line)
		default:
			continue
		}
		continues = strings.HasSuffix(line, `\`) || strings.HasSuffix(line, "|")
	}
	return commands
}

// secret is the drawn part of a link, which is shown to nobody.
var secret = regexp.MustCompile(`[A-Za-z0-9_-]{32,}`)

// Shown is what a recording shows of what a command printed.
func Shown(output string) string {
	return secret.ReplaceAllString(strings.TrimRight(strings.ReplaceAll(output, "\r\n", "\n"), "\n"), "…") // mails have CRLF
}

// Kinds of rows, which are their classes in the SVG. A row that goes on in the next has the class wrapped, too.
const (
	caption = "caption"
	command = "command"
	output  = "output"
	wrapped = " wrapped"
)

// line is one row of the terminal.
type line struct {
	class, text string
	shown       time.Duration // since the beginning
	typed       time.Duration // how long typing takes; 0 for what is not typed
}

// SVG draws the steps. title and description are for readers who do not see it.
func SVG(title, description string, steps []Step) ([]byte, error) {
	lines, err := lay(steps)
	if err != nil {
		return nil, err
	}
	lines, end := schedule(lines)
	width, height := int(columns*letter+2*left), int(top+float64(len(lines)+1)*row+12)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="t d">
<title id="t">%[3]s</title>
<desc id="d">%[4]s</desc>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;white-space:pre;fill:#24292f}
.window,.cover{fill:#f6f8fa}.window{stroke:#8c959f}.button,.cursor{fill:#8c959f}
.caption{fill:#57606a}.prompt{fill:#116329}.output{fill:#0a3069}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.window,.cover{fill:#161b22}.window{stroke:#6e7681}.button,.cursor{fill:#6e7681}.caption{fill:#9da7b3}.prompt{fill:#56d364}.output{fill:#a5d6ff}}
.typing{opacity:0}
@keyframes show{from{opacity:0}}
`, width, height, escape(title), escape(description))
	for i, l := range lines {
		fmt.Fprintf(&b, "#r%d{animation:show 1ms %s backwards}\n", i, seconds(l.shown))
		if n := typedLetters(l); n > 0 {
			fmt.Fprintf(&b, "#r%d .typing{animation:k%[1]d %[2]s steps(%[3]d) %[4]s backwards}@keyframes k%[1]d{from{opacity:1}to{opacity:1;transform:translateX(%.1[5]fpx)}}\n",
				i, seconds(l.typed), n, seconds(l.shown), float64(n)*letter)
		}
	}
	fmt.Fprintf(&b, `#end{animation:show 1ms %s backwards}
@media (prefers-reduced-motion:reduce){*{animation:none!important}}
</style>
<rect class="window" x=".5" y=".5" width="%d" height="%d" rx="8"/>
<circle class="button" cx="22" cy="20" r="6"/><circle class="button" cx="42" cy="20" r="6"/><circle class="button" cx="62" cy="20" r="6"/>
`, seconds(end), width-1, height-1)
	for i, l := range lines {
		draw(&b, i, l)
	}
	y := top + float64(len(lines))*row
	fmt.Fprintf(&b, `<g id="end"><text class="prompt" x="%g" y="%g">$</text><rect class="cursor" x="%g" y="%g" width="%g" height="17"/></g>
</svg>
`, left, y, left+2*letter, y-13, letter)
	return b.Bytes(), nil
}

// lay makes rows of the steps.
func lay(steps []Step) (lines []line, err error) {
	for i, s := range steps {
		if s.Caption != "" {
			if i > 0 {
				lines = append(lines, line{})
			}
			for _, text := range fill("# "+s.Caption, columns) {
				lines = append(lines, line{class: caption, text: text})
			}
		}
		prompt := "$ "
		for text := range strings.SplitSeq(s.Command, "\n") {
			if utf8.RuneCountInString(prompt+text) > columns {
				return nil, fmt.Errorf("a command is wider than %d columns: break it by a \\ at the end of a line: %s", columns-len(prompt), text)
			}
			lines = append(lines, line{class: command, text: prompt + text})
			prompt = "> "
		}
		if s.Output == "" {
			continue
		}
		for text := range strings.SplitSeq(s.Output, "\n") {
			rest := []rune(text)
			for ; len(rest) > columns; rest = rest[columns:] {
				lines = append(lines, line{class: output + wrapped, text: string(rest[:columns])})
			}
			lines = append(lines, line{class: output, text: string(rest)})
		}
	}
	if len(lines) > maxRows {
		return nil, fmt.Errorf("%d rows, at most %d are shown: let commands print less", len(lines), maxRows)
	}
	return lines, nil
}

// fill breaks a text between words.
func fill(text string, width int) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		if n := len(lines) - 1; n >= 0 && utf8.RuneCountInString(lines[n]+" "+word) <= width {
			lines[n] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// schedule says when rows are shown, and returns when the next prompt is. What is not spent on typing is for reading:
// by the row, so that all of it plays for Duration.
func schedule(lines []line) ([]line, time.Duration) {
	const (
		aLetter = 35 * time.Millisecond
		answer  = 300 * time.Millisecond // from the key to what it prints
		last    = 5 * time.Second        // the whole, to read
	)
	var typing time.Duration
	reading := 0
	for i := range lines {
		lines[i].typed = time.Duration(typedLetters(lines[i])) * aLetter
		typing += lines[i].typed
		if lines[i].typed == 0 {
			reading++
		} else if answers(lines, i) {
			typing += answer
		}
	}
	perRow := max(0, Duration-last-typing) / time.Duration(max(1, reading))
	var now, unread time.Duration // unread is the time that the rows of one answer take to read, which are shown at once
	for i := range lines {
		typed := lines[i].typed > 0
		if typed || lines[i].class == "" {
			now, unread = now+unread, 0
		}
		lines[i].shown = now
		switch {
		case !typed:
			unread += perRow
		case answers(lines, i):
			now += lines[i].typed + answer
		default:
			now += lines[i].typed
		}
	}
	return lines, now + unread
}

// answers says whether output follows the row.
func answers(lines []line, i int) bool {
	return i+1 < len(lines) && strings.HasPrefix(lines[i+1].class, output)
}

func typedLetters(l line) int {
	if l.class != command {
		return 0
	}
	return utf8.RuneCountInString(l.text) - 2 // without the prompt
}

func draw(b *bytes.Buffer, i int, l line) {
	if l.class == "" {
		return
	}
	y := top + float64(i)*row
	text, n := escape(l.text), utf8.RuneCountInString(l.text)
	if l.class == command {
		text = fmt.Sprintf(`<tspan class="prompt">%s</tspan>%s`, escape(l.text[:2]), escape(l.text[2:]))
	}
	// The length makes letters as wide as the cover reckons, whatever font there is.
	fmt.Fprintf(b, `<g id="r%d"><text class="%s" xml:space="preserve" x="%g" y="%g" textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`,
		i, l.class, left, y, float64(n)*letter, text)
	if typedLetters(l) > 0 {
		x := left + 2*letter
		fmt.Fprintf(b, `<g class="typing"><rect class="cover" x="%g" y="%g" width="%.1f" height="%g"/><rect class="cursor" x="%g" y="%g" width="%g" height="17"/></g>`,
			x, y-14, columns*letter+left-x, row, x, y-13, letter)
	}
	b.WriteString("</g>\n")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// Read finds the steps that an SVG shows, without captions.
func Read(svg []byte) (steps []Step, err error) {
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	continues := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return steps, nil
		} else if err != nil {
			return nil, err
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "text" {
			continue
		}
		class := attribute(start, "class")
		text, err := content(decoder)
		if err != nil {
			return nil, err
		}
		switch {
		case class == command && strings.HasPrefix(text, "$ "):
			steps = append(steps, Step{Command: text[2:]})
		case len(steps) == 0:
		case class == command:
			steps[len(steps)-1].Command += "\n" + strings.TrimPrefix(text, "> ")
		case strings.HasPrefix(class, output):
			last := &steps[len(steps)-1]
			if last.Output != "" && !continues {
				last.Output += "\n"
			}
			last.Output += text
			continues = strings.HasSuffix(class, wrapped)
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// content is the text up to the end of the element that has begun.
func content(decoder *xml.Decoder) (string, error) {
	var text strings.Builder
	for depth := 1; depth > 0; {
		token, err := decoder.Token()
		if err != nil {
			return "", err
		}
		switch token := token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			text.Write(token)
		}
	}
	return text.String(), nil
}
