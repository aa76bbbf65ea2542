package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
)

// source is one stream of bytes and the name that errors call it by.
type source struct {
	name string
	data []byte
}

// mostBytes is the most that is read of a file or a stream: about what a cluster of a
// million pods takes.
const mostBytes = 2 << 30

// open reads what a path names: a file, the manifests of a folder (not of
// those below it) in name order, or standard input ("-").
func (s *Set) open(path string, stdin io.Reader) ([]source, error) {
	if path == "-" {
		if s.stdinRead {
			return nil, errors.New("standard input: is read already; give it once")
		}
		s.stdinRead = true
		defer s.reading("standard input")()
		src, err := s.all("standard input", stdin)
		return []source{src}, err
	}
	stat, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, plain(path, err)
	case stat.IsDir():
		return s.readFolder(path)
	case !stat.Mode().IsRegular(): // a pipe, even to open which may take for ever
		defer s.reading(path)()
	}
	src, err := s.readFile(path)
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
	f, err := os.Open(path) // #nosec G304 -- the user names the file
	if err != nil {
		return source{}, plain(path, err)
	}
	defer f.Close()
	return s.all(path, f)
}

// all reads to the end, if that is near enough.
func (s *Set) all(name string, from io.Reader) (source, error) {
	var data bytes.Buffer
	if f, ok := from.(*os.File); ok {
		if stat, err := f.Stat(); err == nil && stat.Mode().IsRegular() {
			data.Grow(int(min(stat.Size(), s.most)) + bytes.MinRead)
		}
	}
	n, err := data.ReadFrom(io.LimitReader(from, s.most+1))
	switch {
	case err != nil:
		return source{}, plain(name, err)
	case n > s.most:
		return source{}, fmt.Errorf("%s: is longer than %d bytes, the most that is read at once", name, s.most)
	}
	return source{name, utf8Text(data.Bytes())}, nil
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
		src, err := s.readFile(filepath.Join(path, e.Name()))
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
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	var units []uint16
	for at := 2; at+1 < len(data); at += 2 {
		units = append(units, order.Uint16(data[at:]))
	}
	if len(data)%2 == 1 {
		units = append(units, 0xfffd) // half a character is one that is wrong
	}
	return []byte(string(utf16.Decode(units)))
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
			docs = append(docs, document{data[start:at], startLine})
			start, startLine = at+len("---"), line
		}
		at = end
	}
	docs = append(docs, document{data[start:], startLine})
	return slices.DeleteFunc(docs, func(d document) bool { return blank(d.data) })
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
		if l := strings.TrimSpace(string(line)); l != "" && l[0] != '#' {
			return false
		}
	}
	return true
}
