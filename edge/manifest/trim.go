package manifest

import (
	"bytes"
	"regexp"
	"strings"
)

// part is what may be left out of a JSON value: of an object the members that unread
// names, and parts of those that below names; of an array the same of each element.
type part struct {
	unread []string
	below  map[string]*part
}

// podUnread is what is not read of a pod: no decision depends on it.
var podUnread = func() *part {
	container := &part{unread: []string{"args", "command", "env", "envFrom", "imagePullPolicy", "lifecycle", "livenessProbe", "readinessProbe",
		"securityContext", "startupProbe", "terminationMessagePath", "terminationMessagePolicy", "volumeDevices"},
		below: map[string]*part{"volumeMounts": {unread: []string{"mountPath", "mountPropagation", "name", "readOnly", "recursiveReadOnly", "subPath", "subPathExpr"}}}}
	status := &part{unread: []string{"containerID", "image", "imageID", "lastState", "ready", "started", "volumeMounts"},
		below: map[string]*part{"state": {unread: []string{"running", "terminated"}}}}
	return &part{below: map[string]*part{
		"metadata": {unread: []string{"managedFields"}},
		"spec": {
			unread: []string{"dnsPolicy", "enableServiceLinks", "imagePullSecrets", "securityContext", "serviceAccount", "serviceAccountName"},
			below: map[string]*part{
				"containers": container, "initContainers": container,
				"volumes": {unread: []string{"configMap", "downwardAPI", "emptyDir", "hostPath", "projected", "secret"}},
			},
		},
		"status": {
			unread: []string{"hostIP", "hostIPs", "podIP", "podIPs"},
			below: map[string]*part{
				"conditions":        {unread: []string{"lastProbeTime"}},
				"containerStatuses": status, "initContainerStatuses": status,
			},
		},
	}}
}()

// trim appends the JSON value to out, without white space and without what the part
// names. It is false where data is something else, or nested very deeply.
func trim(out, data []byte, p *part) ([]byte, bool) {
	t := trimmer{skimmer: skimmer{data: data}, out: out}
	ok := t.value(p, mostDepth)
	t.space()
	return t.out, ok && t.at == len(data)
}

// mostDepth is how deeply a value may be nested.
const mostDepth = 1000

// trimmer checks all of the JSON text, and copies what is to be left.
type trimmer struct {
	skimmer
	out []byte
}

func (t *trimmer) value(p *part, depth int) bool {
	t.space()
	if t.at == len(t.data) || depth == 0 {
		return false
	}
	switch t.data[t.at] {
	case '{':
		return t.object(p, depth-1)
	case '[':
		return t.array(p, depth-1)
	case '"':
		return t.text()
	case 't':
		return t.literal("true")
	case 'f':
		return t.literal("false")
	case 'n':
		return t.literal("null")
	}
	return t.number()
}

// object takes members until the closing brace. What is not read is checked like the
// rest, and then taken back.
func (t *trimmer) object(p *part, depth int) bool {
	t.at++
	t.out = append(t.out, '{')
	start := len(t.out)
	ok := t.members('}', func() bool {
		end := len(t.out)
		if end > start {
			t.out = append(t.out, ',')
		}
		t.space()
		name := len(t.out) + 1
		if !t.text() || !t.next(':') {
			return false
		}
		below, keep := p.member(t.out[name : len(t.out)-1])
		t.out = append(t.out, ':')
		if !t.value(below, depth) {
			return false
		}
		if !keep {
			t.out = t.out[:end]
		}
		return true
	})
	t.out = append(t.out, '}')
	return ok
}

// member tells what of a member is to be left.
func (p *part) member(name []byte) (below *part, keep bool) {
	if p == nil {
		return nil, true
	}
	for _, n := range p.unread {
		if n == string(name) {
			return nil, false
		}
	}
	return p.below[string(name)], true
}

func (t *trimmer) array(p *part, depth int) bool {
	t.at++
	t.out = append(t.out, '[')
	start := len(t.out)
	ok := t.members(']', func() bool {
		if len(t.out) > start {
			t.out = append(t.out, ',')
		}
		return t.value(p, depth)
	})
	t.out = append(t.out, ']')
	return ok
}

// text takes a string.
func (t *trimmer) text() bool {
	if t.at == len(t.data) || t.data[t.at] != '"' {
		return false
	}
	for i := t.at + 1; i < len(t.data); i++ {
		switch c := t.data[i]; {
		case c == '"':
			return t.copy(i + 1)
		case c < ' ':
			return false
		case c == '\\':
			n := escape(t.data[i+1:])
			if n == 0 {
				return false
			}
			i += n
		}
	}
	return false
}

var hexadecimal = regexp.MustCompile(`^u[0-9a-fA-F]{4}`)

// escape is how many bytes of an escape follow the backslash, 0 where it is none.
func escape(data []byte) int {
	if len(data) > 0 && strings.IndexByte(`"\/bfnrt`, data[0]) >= 0 {
		return 1
	}
	return len(hexadecimal.Find(data))
}

func (t *trimmer) literal(word string) bool {
	return bytes.HasPrefix(t.data[t.at:], []byte(word)) && t.copy(t.at+len(word))
}

var numbers = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`)

func (t *trimmer) number() bool {
	n := len(numbers.Find(t.data[t.at:]))
	return n > 0 && t.copy(t.at+n)
}

// copy copies the text up to there.
func (t *trimmer) copy(end int) bool {
	t.out = append(t.out, t.data[t.at:end]...)
	t.at = end
	return true
}
