package manifest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source is one stream of bytes and the name that errors call it by.
type source struct {
	name string
	data []byte
}

// open reads what a path names: a file, the manifests of a folder (not of
// those below it) in name order, or standard input ("-").
func open(path string, stdin io.Reader) ([]source, error) {
	if path == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return []source{{"standard input", data}}, nil
	}
	stat, err := os.Stat(path)
	if err != nil {
		return nil, plain(path, err)
	}
	if !stat.IsDir() {
		s, err := readFile(path)
		return []source{s}, err
	}
	return readFolder(path)
}

func readFile(path string) (source, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return source{}, plain(path, err)
	}
	return source{path, data}, nil
}

func readFolder(path string) ([]source, error) {
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, plain(path, err)
	}
	var sources []source
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			continue
		}
		s, err := readFile(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%s: the folder holds no *.yaml, *.yml or *.json file", path)
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

// document is one YAML document of a source, or the JSON that stands in its
// place.
type document struct {
	data []byte
	line int // of the source, 0-based, at which it starts
}

// split cuts a source at the lines that separate YAML documents.
func split(data []byte) []document {
	var docs []document
	start, line, startLine := 0, 0, 0
	for at := 0; at < len(data); {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line++
		if separates(data[at:end]) {
			docs = append(docs, document{data[start:at], startLine})
			start, startLine = end, line
		}
		at = end
	}
	docs = append(docs, document{data[start:], startLine})
	return slices.DeleteFunc(docs, func(d document) bool { return blank(d.data) })
}

// separates tells a line of three dashes, perhaps with a comment.
func separates(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok {
		return false
	}
	trimmed := bytes.TrimSpace(rest)
	return len(trimmed) == 0 || trimmed[0] == '#' && len(trimmed) < len(rest) && (rest[0] == ' ' || rest[0] == '\t')
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
