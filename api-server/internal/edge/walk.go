package edge

import "bytes"

// walk goes once through JSON that was found valid before, and copies nothing.
type walk struct {
	raw []byte
	at  int
}

// next passes over blanks and gives what follows them; 0 at the end.
func (w *walk) next() byte {
	for ; w.at < len(w.raw); w.at++ {
		if c := w.raw[w.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// members goes through the object that begins here. each has to pass over the value of its name.
func (w *walk) members(each func(name []byte)) {
	for w.at++; w.next() != '}'; {
		name := w.text()
		w.next()
		w.at++ // the colon
		w.next()
		each(name)
		if w.next() == ',' {
			w.at++
		}
	}
	w.at++
}

// entries goes through the list that begins here. each has to pass over the n-th entry, from 0.
func (w *walk) entries(each func(n int)) {
	n := 0
	for w.at++; w.next() != ']'; n++ {
		each(n)
		if w.next() == ',' {
			w.at++
		}
	}
	w.at++
}

// text passes over a string and gives its value, which lies in raw unless it has escapes.
func (w *walk) text() []byte {
	start := w.at
	w.quoted()
	quoted := w.raw[start:w.at]
	if bytes.IndexByte(quoted, '\\') >= 0 {
		return []byte(text(quoted))
	}
	return quoted[1 : len(quoted)-1]
}

// quoted passes over a string; a quotation mark after an odd number of backslashes does not end it.
func (w *walk) quoted() {
	for w.at++; ; w.at++ {
		w.at += bytes.IndexByte(w.raw[w.at:], '"')
		slashes := 0
		for w.raw[w.at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			w.at++
			return
		}
	}
}

// value passes over whatever begins here.
func (w *walk) value() {
	switch w.next() {
	case '{':
		w.members(func([]byte) { w.value() })
	case '[':
		w.entries(func(int) { w.value() })
	case '"':
		w.quoted()
	default:
		w.word()
	}
}

// word passes over a number, true, false or null.
func (w *walk) word() {
	for ; w.at < len(w.raw); w.at++ {
		switch w.raw[w.at] {
		case ',', ']', '}', ' ', '\n', '\t', '\r':
			return
		}
	}
}
