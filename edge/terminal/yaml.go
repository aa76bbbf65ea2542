package terminal

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// YAML returns the JSON value as YAML. A string with characters that are not safe on a
// terminal stands in double quotes and on one line, where an escape of a Writer means
// the same as the character.
func YAML(text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(quoted(value)); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

// quoted returns the value with its strings as str and its numbers as they are written.
func quoted(value any) any {
	switch v := value.(type) {
	case string:
		return str(v)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case []any:
		for i := range v {
			v[i] = quoted(v[i])
		}
	case map[string]any:
		m := make(map[str]any, len(v))
		for key, member := range v { // any order: YAML sorts them
			m[str(key)] = quoted(member)
		}
		return m
	}
	return value
}

// str is a string or the key of a map.
type str string

// MarshalYAML returns the string in the style that it needs.
func (s str) MarshalYAML() (any, error) {
	if text := string(s); Escape(text) == text {
		return text, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(s), Style: yaml.DoubleQuotedStyle}, nil
}
