package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// raw is one object as JSON, and where it was found.
type raw struct {
	where string
	head  head
	data  []byte
}

// head is what of an object tells its kind, and the members of a list.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// objects returns the objects of a source, the members of lists one by one.
func objects(s source) ([]raw, error) {
	var all []raw
	for i, doc := range split(s.data) {
		where := fmt.Sprintf("%s: document %d", s.name, i+1)
		values, err := doc.values()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		for j, v := range values {
			at := where
			if len(values) > 1 {
				at = fmt.Sprintf("%s, value %d", where, j+1)
			}
			if all, err = flatten(all, at, head{}, v); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// flatten appends the object, or the members of the list that it is. A member
// of a list of one kind (a PodList, say) need not repeat it.
func flatten(all []raw, where string, member head, data []byte) ([]raw, error) {
	h := member
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &h); err != nil {
		return nil, fmt.Errorf("%s: %s", where, headProblem(data, err))
	}
	switch {
	case h.Kind == "":
		return nil, fmt.Errorf("%s: kind: is missing", where)
	case h.APIVersion == "":
		return nil, fmt.Errorf("%s: %s: apiVersion: is missing", where, h.Kind)
	}
	of, list := strings.CutSuffix(h.Kind, "List")
	if !list {
		return append(all, raw{where, h, data}), nil
	}
	member = head{}
	if of != "" {
		member = head{APIVersion: h.APIVersion, Kind: of}
	}
	var err error
	for i, item := range h.Items {
		if all, err = flatten(all, fmt.Sprintf("%s, item %d", where, i+1), member, item); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func headProblem(data []byte, err error) string {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' {
		return "is not a Kubernetes object"
	}
	return decodeProblem(err)
}

// values returns the JSON values of the document: one, but for a stream of
// JSON objects.
func (d document) values() ([]json.RawMessage, error) {
	trimmed := bytes.TrimSpace(d.data)
	if trimmed[0] != '{' {
		return d.fromYAML()
	}
	if json.Valid(trimmed) {
		return []json.RawMessage{trimmed}, nil
	}
	values, err := stream(trimmed)
	if err == nil {
		return values, nil
	}
	if flow, err := d.fromYAML(); err == nil {
		return flow, nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		skipped := len(d.data) - len(bytes.TrimLeft(d.data, " \t\r\n"))
		line := d.line + 1 + bytes.Count(d.data[:min(skipped+int(syntax.Offset), len(d.data))], []byte("\n"))
		return nil, fmt.Errorf("line %d: not JSON: %w", line, err)
	}
	return nil, fmt.Errorf("not JSON: %w", err)
}

// stream reads JSON values that follow each other.
func stream(data []byte) ([]json.RawMessage, error) {
	var values []json.RawMessage
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var v json.RawMessage
		switch err := dec.Decode(&v); err {
		case nil:
			values = append(values, v)
		case io.EOF:
			return values, nil
		default:
			return nil, err
		}
	}
}

// fromYAML converts the document. The YAML library counts lines from the
// document's start; on an error it is asked again with the lines before.
func (d document) fromYAML() ([]json.RawMessage, error) {
	data, err := yaml.YAMLToJSONStrict(d.data)
	if err == nil {
		return []json.RawMessage{data}, nil
	}
	if _, again := yaml.YAMLToJSONStrict(append(bytes.Repeat([]byte("\n"), d.line), d.data...)); again != nil {
		err = again
	}
	text := oneLine(err)
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return nil, errors.New("not YAML: " + text)
}

// oneLine joins the lines over which libraries spread an error.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
