package terminal

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"
)

// Writer passes graphic characters, line feeds and tabs on and escapes all others. Its
// methods may be called by several goroutines. Characters may be cut in two between
// writes; one that is not complete at the end is not written.
type Writer struct {
	out io.Writer

	mu   sync.Mutex
	rest []byte // the beginning of a character
}

// NewWriter returns a new Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write writes the text.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	data := append(w.rest, text...)
	var b strings.Builder
	b.Grow(len(data))
	for {
		n := plain(data)
		b.Write(data[:n])
		if data = data[n:]; !utf8.FullRune(data) {
			break
		}
		r, size := utf8.DecodeRune(data)
		writeRune(&b, r)
		data = data[size:]
	}
	w.rest = bytes.Clone(data)
	if _, err := io.WriteString(w.out, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// plain returns the length of the graphic ASCII, line feeds and tabs that text begins with.
func plain(text []byte) int {
	for i, c := range text {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return i
		}
	}
	return len(text)
}

// Control writes a control sequence of the program's own.
func (w *Writer) Control(sequence string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.out, sequence)
	return err
}

// IsTerminal reports whether a person sees what is written.
func (w *Writer) IsTerminal() bool {
	f, ok := w.out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Log returns a writer of a log to out, each of whose writes is an entry. It does what
// a Writer does, and it indents the further lines of an entry, as klog indents values
// of several lines. So none looks like an entry of its own.
func Log(out io.Writer) io.Writer { return log{NewWriter(out)} }

type log struct{ *Writer }

func (l log) Write(entry []byte) (int, error) {
	lines := bytes.SplitAfter(entry, []byte("\n"))
	for i, line := range lines {
		if i > 0 && len(line) > 0 && line[0] != '\t' && line[0] != ' ' {
			lines[i] = append([]byte("\t"), line...)
		}
	}
	if _, err := l.Writer.Write(bytes.Join(lines, nil)); err != nil {
		return 0, err
	}
	return len(entry), nil
}
