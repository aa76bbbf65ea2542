package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// lines finds the line of a field in a text. The zero value finds none.
type lines struct{ root *yamlv3.Node }

func readLines(text []byte) lines {
	var doc yamlv3.Node
	if yamlv3.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return lines{}
	}
	return lines{doc.Content[0]}
}

// of is the line of the field at the path, or of what it would stand in; 0 if
// the path is empty.
func (l lines) of(path string) int {
	if l.root == nil || path == "" {
		return 0
	}
	at, line := l.root, 0
	for _, name := range splitPath(path) {
		if at.Kind == yamlv3.AliasNode {
			at = at.Alias
		}
		next, on := child(at, name)
		if next == nil {
			return line
		}
		at, line = next, on
	}
	return line
}

// child is what stands under the name, or number, in a node, and on which line.
func child(at *yamlv3.Node, name string) (*yamlv3.Node, int) {
	switch at.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == name {
				return at.Content[i+1], at.Content[i].Line
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i < len(at.Content) {
			return at.Content[i], at.Content[i].Line
		}
	}
	return nil, 0
}

var (
	numbered = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?line (\d+): (.*)$`)
	setTwice = regexp.MustCompile(`line (\d+): key "([^"]*)" already set in map`)
)

// addYAML adds why a text is not YAML.
func (c *checker) addYAML(err error) {
	p := Problem{Reason: "is not YAML: " + strings.TrimPrefix(oneLine(err), "error converting YAML to JSON: ")}
	if m := numbered.FindStringSubmatch(oneLine(err)); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Reason = "is not YAML: " + m[2]
	}
	c.problems = append(c.problems, p)
}

// isBadJSON tells of a text that schedulers read as JSON, as it begins with a brace, and
// that is none. It may be YAML.
func (c *checker) isBadJSON(text []byte) bool {
	if !utilyaml.IsJSONBuffer(text) {
		return false
	}
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(text, new(any)), &syntax) {
		return false
	}
	before := text[:max(syntax.Offset-1, 0)] // the offset counts the byte that is wrong
	c.problems = append(c.problems, Problem{
		Line:   1 + bytes.Count(before, []byte("\n")),
		Reason: "is not JSON, which a text that begins with { has to be: " + syntax.Error(),
	})
	return true
}

// longest is how much of the path of a field is told.
const longest = 200

// shortened is the path of a field, cut where it is very long.
func shortened(path string) string {
	if len(path) <= longest {
		return path
	}
	return path[:longest] + "..."
}

// checkEnd tells of a second document.
func (c *checker) checkEnd(text []byte) {
	documents := yamlv3.NewDecoder(bytes.NewReader(text))
	for first := true; ; first = false {
		var doc yamlv3.Node
		if documents.Decode(&doc) != nil {
			return
		}
		if !first && doc.Content[0].Tag != "!!null" {
			c.problems = append(c.problems, Problem{Line: doc.Content[0].Line, Reason: "no scheduler reads what stands after the first document"})
			return
		}
	}
}

// addTwice adds the keys that an error says are set twice.
func (c *checker) addTwice(err error) {
	for _, m := range setTwice.FindAllStringSubmatch(oneLine(err), -1) {
		line, _ := strconv.Atoi(m[1])
		c.problems = append(c.problems, Problem{Line: line, Field: m[2], Reason: "is set twice"})
	}
}
