package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// raw is one object as JSON, and where it was found.
type raw struct {
	where            string
	apiVersion, kind string
	data             []byte
}

// errMany is about more objects than are read.
var errMany = fmt.Errorf("there are more than %d objects, the most that are read of a file", mostObjects)

// objects returns the objects of a source, the members of lists one by one. In haste it
// may take for JSON what is none: they are right if each of them can be decoded.
func objects(s source, hasty bool, workers int) ([]raw, error) {
	var all []raw
	docs := split(s.data)
	if len(docs) > mostObjects {
		return nil, fmt.Errorf("%s: %w", s.name, errMany)
	}
	for i, doc := range docs {
		where := fmt.Sprintf("%s: document %d", s.name, i+1)
		values, err := doc.values(hasty)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		for j, v := range values {
			at := where
			if len(values) > 1 {
				at = fmt.Sprintf("%s, value %d", where, j+1)
			}
			if all, err = flatten(all, raw{where: at, data: v.data}, v.outline, 0, hasty, workers); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// mostNested bounds how many lists may be in each other: each is searched anew.
const mostNested = 8

// flatten appends the object, or the members of the list that it is. A member
// of a list of one kind (a PodList, say) need not repeat it.
func flatten(all []raw, r raw, o *outline, depth int, hasty bool, workers int) ([]raw, error) {
	if o == nil {
		return nil, fmt.Errorf("%s: is not a Kubernetes object", r.where)
	}
	if err := word(o.kind, &r.kind); err != nil {
		return nil, fmt.Errorf("%s: kind: %w", r.where, err)
	}
	if err := word(o.apiVersion, &r.apiVersion); err != nil {
		return nil, fmt.Errorf("%s: %s: apiVersion: %w", r.where, r.kind, err)
	}
	of, list := strings.CutSuffix(r.kind, "List")
	switch {
	case o.long || len(all) >= mostObjects:
		return nil, fmt.Errorf("%s: %s: %w", r.where, r.kind, errMany)
	case !list:
		return append(all, r), nil
	case depth == mostNested:
		return nil, fmt.Errorf("%s: %s: is a list in more than %d others", r.where, r.kind, mostNested-1)
	}
	if !o.list {
		return nil, fmt.Errorf("%s: %s: items: must be an array", r.where, r.kind)
	}
	var err error
	outlines := make([]*outline, len(o.items))
	par.Rows(len(outlines), workers, 64, func(rows par.Range) {
		for i := rows.From; i < rows.To; i++ {
			outlines[i] = (&skimmer{data: o.items[i], early: hasty}).outline()
		}
	})
	for i, item := range o.items {
		member := raw{where: fmt.Sprintf("%s, item %d", r.where, i+1), data: item}
		if of != "" {
			member.apiVersion, member.kind = r.apiVersion, of
		}
		if all, err = flatten(all, member, outlines[i], depth+1, hasty, workers); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// word decodes a string that may not be empty. What is not given stays.
func word(data []byte, into *string) error {
	if data != nil {
		if err := json.Unmarshal(data, into); err != nil {
			return errors.New(decodeProblem(err))
		}
	}
	if *into == "" {
		return errors.New("is missing")
	}
	return nil
}

// value is a JSON value and its outline, nil where it is no object.
type value struct {
	data []byte
	*outline
}

// values returns the JSON values of the document: one, except for a stream of
// JSON objects.
func (d document) values(hasty bool) ([]value, error) {
	trimmed := bytes.TrimSpace(d.data)
	if trimmed[0] != '{' {
		return d.fromYAML()
	}
	if hasty {
		if o := (&skimmer{data: trimmed, indented: true}).outline(); o != nil {
			return []value{{trimmed, o}}, nil
		}
	}
	values, err := stream(trimmed)
	if err == nil {
		return values, nil
	}
	if err == errMany {
		return nil, err
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
func stream(data []byte) ([]value, error) {
	var values []value
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var v json.RawMessage
		switch err := dec.Decode(&v); err {
		case nil:
			if len(values) == mostObjects {
				return nil, errMany
			}
			values = append(values, value{v, (&skimmer{data: v}).outline()})
		case io.EOF:
			return values, nil
		default:
			return nil, err
		}
	}
}

// fromYAML converts the document. The YAML library counts lines from the
// document's start; on an error it is asked again with the lines before.
func (d document) fromYAML() ([]value, error) {
	if len(d.data) > mostYAML {
		return nil, fmt.Errorf("is YAML longer than %d MiB, the most that a document may have; JSON may be longer", mostYAML>>20)
	}
	if err := untrusted.Aliases(d.data); err != nil {
		return nil, err
	}
	data, err := yaml.YAMLToJSONStrict(d.data)
	if err == nil {
		if !ends(d.data) {
			return nil, errors.New("not YAML: something follows the object; begin the next one with ---")
		}
		return []value{{data, (&skimmer{data: data}).outline()}}, nil
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

// ends tells a text that holds nothing behind its first YAML document: the
// conversion to JSON looks no further.
func ends(data []byte) bool {
	dec := goyaml.NewDecoder(bytes.NewReader(data))
	// The document is well-formed and need not fit the empty struct.
	_ = dec.Decode(&struct{}{})
	return dec.Decode(&struct{}{}) == io.EOF
}

// oneLine joins the lines over which libraries spread an error.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
