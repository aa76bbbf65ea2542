package manifest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf16"

	"github.com/berth-scheduler/berth/edge/untrusted"
)

// source is one stream of bytes and the name that errors call it by.
type source struct {
	name string
	data []byte
}

// Bounds of what is read.
const (
	// mostBytes of files and streams together: about what a cluster of a million pods
	// takes.
	mostBytes = 2 << 30
	// mostWide bytes of a text in UTF-16, which is converted as a whole.
	mostWide = 256 << 20
	// mostYAML bytes of a YAML document. In memory it takes 60 to 140 times as much.
	mostYAML = 64 << 20
	// mostObjects of a file or a stream.
	mostObjects = 4_000_000
)

// open reads what a path names: a file, the manifests of a folder (not of
// those below it) in name order, or standard input ("-").
func (s *Set) open(path string, stdin io.Reader) ([]source, error) {
	if path == "-" {
		if s.stdinRead {
			return nil, errors.New("standard input: is read already; give it once")
		}
		s.stdinRead = true
		return s.stream("standard input", stdin)
	}
	stat, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, plain(path, err)
	case stat.IsDir():
		return s.readFolder(path)
	case stat.Mode().IsRegular():
		src, err := s.readFile(path)
		return []source{src}, err
	case stat.Mode()&os.ModeSocket != 0:
		return nil, plain(path, &untrusted.NotRegular{Mode: stat.Mode()})
	}
	defer s.reading(path)() // a pipe, which may take for ever
	f, err := untrusted.OpenAny(path)
	if err != nil {
		return nil, plain(path, err)
	}
	defer f.Close()
	src, err := s.all(path, f)
	return []source{src}, err
}

// stream reads a stream to its end.
func (s *Set) stream(name string, from io.Reader) ([]source, error) {
	defer s.reading(name)()
	src, err := s.all(name, from)
	return []source{src}, err
}

// reading tells that a stream is being read.
func (s *Set) reading(name string) (over func()) {
	if s.Reading == nil {
		return func() {}
	}
	return s.Reading(name)
}

func (s *Set) readFile(path string) (source, error) {
	f, err := untrusted.Open(path)
	if err != nil {
		return source{}, plain(path, err)
	}
	defer f.Close()
	return s.all(path, f)
}

// all reads to the end, if that is near enough.
func (s *Set) all(name string, from io.Reader) (source, error) {
	buffered := bufio.NewReader(from)
	start, _ := buffered.Peek(2) // what is shorter has no mark
	most, wide := s.most-s.read, byteOrder(start) != nil
	var text io.Reader = buffered
	if wide {
		most = min(most, mostWide)
	} else {
		text = &textReader{from: buffered}
	}
	var data bytes.Buffer
	if f, ok := from.(*os.File); ok {
		size, err := textSize(f, most, wide)
		if err != nil {
			return source{}, plain(name, err)
		}
		data.Grow(int(size) + bytes.MinRead)
	}
	n, err := data.ReadFrom(io.LimitReader(text, most+1))
	switch {
	case err != nil:
		return source{}, plain(name, err)
	case n > most && s.read > 0:
		return source{}, fmt.Errorf("%s: makes the input longer than %d bytes, the most that is read at once", name, most+s.read)
	case n > most:
		return source{}, fmt.Errorf("%s: is longer than %d bytes, the most that is read at once", name, most)
	}
	s.read += n
	return source{name, utf8Text(data.Bytes())}, nil
}

// textSize returns how much of a file will be read, 0 where it is not regular. A file that
// is no text is an error before there is memory for it: one with holes may be of any size.
func textSize(f *os.File, most int64, wide bool) (int64, error) {
	stat, err := f.Stat()
	if err != nil || !stat.Mode().IsRegular() {
		return 0, nil // reading says why
	}
	size := min(stat.Size(), most)
	if wide {
		return size, nil
	}
	_, err = io.Copy(io.Discard, &textReader{from: io.NewSectionReader(f, 0, size)})
	return size, err
}

// textReader reads a text, and fails at a NUL.
type textReader struct {
	from io.Reader
	read int64
}

// Read is for io.Reader.
func (r *textReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if i := bytes.IndexByte(p[:n], 0); i >= 0 {
		return 0, fmt.Errorf("is no text: byte %d is NUL", r.read+int64(i))
	}
	r.read += int64(n)
	return n, err
}

func (s *Set) readFolder(path string) ([]source, error) {
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, plain(path, err)
	}
	var sources []source
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			continue
		}
		name := filepath.Join(path, e.Name())
		src, err := s.readFile(name)
		if other := (*untrusted.NotRegular)(nil); errors.As(err, &other) {
			s.Notices = append(s.Notices, fmt.Sprintf("%s: %s; it is left out", name, other))
			continue
		}
		if err != nil {
			return nil, err
		}
		sources = append(sources, src)
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%s: the directory holds no *.yaml, *.yml or *.json file", path)
	}
	return sources, nil
}

// plain drops the operation that os puts before path and reason.
func plain(path string, err error) error {
	if pe, ok := err.(*os.PathError); ok {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// utf8Text is the text without a byte order mark. What has the mark of UTF-16,
// as some shells write a file, becomes UTF-8.
func utf8Text(data []byte) []byte {
	order := byteOrder(data)
	if order == nil {
		return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	units := make([]uint16, 0, len(data)/2+1)
	for at := 2; at+1 < len(data); at += 2 {
		units = append(units, order.Uint16(data[at:]))
	}
	if len(data)%2 == 1 {
		units = append(units, 0xfffd) // half a character is one that is wrong
	}
	return []byte(string(utf16.Decode(units)))
}

// byteOrder returns the order of bytes that the mark of UTF-16 says, nil without a mark.
func byteOrder(data []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return binary.BigEndian
	}
	return nil
}

// document is one YAML document of a source, or the JSON that stands in its
// place.
type document struct {
	data []byte
	line int // of the source, 0-based, at which it starts
}

// split cuts a source where YAML documents begin ("---", which may have the
// document's first line behind it) and end ("..."). No text inside a document
// can begin a line like that. Directives stay with the document below them.
func split(data []byte) []document {
	var docs []document
	start, line, startLine := 0, 0, 0
	for at := 0; at < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		begins, ends := marks(data[at:end], "---"), marks(data[at:end], "...")
		if begins && directives(data[start:at]) {
			begins = false
		}
		if begins || ends {
			docs = appendDocument(docs, data[start:at], startLine)
			start, startLine = at+len("---"), line
		}
		at = end
	}
	return appendDocument(docs, data[start:], startLine)
}

// appendDocument appends a document that holds something, and none beyond the bound.
func appendDocument(docs []document, data []byte, line int) []document {
	if len(docs) > mostObjects || blank(data) {
		return docs
	}
	return append(docs, document{data, line})
}

// marks tells a line that is the mark, or begins with it and white space.
func marks(line []byte, mark string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// directives tells lines that say how to read the document below them.
func directives(data []byte) bool {
	some := false
	for line := range bytes.Lines(data) {
		switch {
		case line[0] == '%':
			some = true
		case !blank(line):
			return false
		}
	}
	return some
}

// blank tells a document that holds nothing but white space and comments.
func blank(data []byte) bool {
	for line := range bytes.Lines(data) {
		if l := bytes.TrimSpace(line); len(l) > 0 && l[0] != '#' {
			return false
		}
	}
	return true
}
