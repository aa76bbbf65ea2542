package untrusted

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"
)

// mostCopied bounds what the aliases of a YAML document stand for, in bytes.
const mostCopied = 16 << 20

// nodeSize is what a node of a YAML document counts for beside its text, in bytes.
const nodeSize = 16

// YAML returns the content of a configuration file: a regular file of at most 10 MiB
// whose aliases stand for little.
func YAML(path string) ([]byte, error) {
	data, err := File(path, Config)
	if err != nil {
		return nil, err
	}
	return data, at(path, Aliases(data))
}

// Aliases reports why a text may not be decoded as YAML: the aliases of a document stand
// for too much. What is no YAML is left to the decoder.
func Aliases(data []byte) error {
	if !indicated(data, '&') || !indicated(data, '*') {
		return nil
	}
	for documents := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var root yaml.Node
		if documents.Decode(&root) != nil {
			return nil
		}
		sizes := map[*yaml.Node]int64{}
		whole, err := expanded(&root, sizes)
		if err != nil {
			return err
		}
		if whole-written(&root) > mostCopied {
			return fmt.Errorf("the aliases of the YAML document stand for more than %d MiB", mostCopied>>20)
		}
	}
}

// indicated reports whether the character stands where it can begin an anchor or an alias.
func indicated(data []byte, c byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(data[at:], c)
		if i < 0 || at+i+1 == len(data) {
			return false
		}
		at += i
		if (at == 0 || bytes.IndexByte([]byte(" \t\r\n[{,:"), data[at-1]) >= 0) && bytes.IndexByte([]byte(" \t\r\n&*"), data[at+1]) < 0 {
			return true
		}
	}
}

// written is the size of a node as it is written.
func written(n *yaml.Node) int64 {
	size := int64(len(n.Value) + nodeSize)
	for _, c := range n.Content {
		size += written(c)
	}
	return size
}

var errItself = errors.New("an anchor of the YAML document contains itself")

// expanded is the size of a node with a copy of its target for each alias. The map has
// those of anchors, -1 of one that is being computed.
func expanded(n *yaml.Node, sizes map[*yaml.Node]int64) (int64, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Anchor != "" {
		switch size := sizes[n]; {
		case size < 0:
			return 0, errItself
		case size > 0:
			return size, nil
		}
		sizes[n] = -1
	}
	size := int64(len(n.Value) + nodeSize)
	for _, c := range n.Content {
		of, err := expanded(c, sizes)
		if err != nil {
			return 0, err
		}
		size += min(of, math.MaxInt64-size)
	}
	if n.Anchor != "" {
		sizes[n] = size
	}
	return size, nil
}
