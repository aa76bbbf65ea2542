package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/table"
)

// Found is the answer of find: pods and nodes by a part of their names, each in the order of names.
type Found struct {
	Head
	Pods  []string `json:"pods"` // namespace/name
	Nodes []string `json:"nodes"`
	// More is set if there are others that match.
	More bool `json:"more"`
}

// Bounds of find: of each list, and of the pods that are compared between two steps of the loop.
const (
	mostFound    = 100
	mostCompared = 8192
)

func (h *handler) find(r *http.Request) (any, error) {
	p := paramsOf(r, "q", "limit")
	s := search{text: p.values.Get("q"), most: min(p.limit(), mostFound), pods: map[string]bool{}}
	if s.text == "" {
		p.fail("q", "is needed: a part of a name")
	}
	if p.err != nil {
		return nil, p.err
	}
	if err := h.look(r.Context(), s.queued); err != nil {
		return nil, err
	}
	for _, p := range h.Recorder.OtherPods() {
		s.compare(p.Pod.Namespace, p.Pod.Name)
	}
	for s.next < s.rows && !s.full() {
		if err := h.look(r.Context(), s.placed); err != nil {
			return nil, err
		}
	}
	return s.found(), nil
}

// search looks for a part of names, a bounded number of them at a time. What comes or goes meanwhile may be
// found or not.
type search struct {
	text       string
	most       int
	pods       map[string]bool
	nodes      []string
	next, rows int // the first row that was not looked at, and how many there are
}

// full reports whether more was found than is answered.
func (s *search) full() bool { return len(s.pods) > s.most && len(s.nodes) > s.most }

// queued looks at the pods that wait.
func (s *search) queued(m *machine.Machine) {
	s.rows = m.Table().Rows()
	for e := range m.Queue().Entries() {
		s.compare(e.Pod.Namespace, e.Pod.Name)
	}
}

// placed looks at the next rows of nodes and at the pods there.
func (s *search) placed(m *machine.Machine) {
	t := m.Table()
	s.rows = t.Rows()
	for compared := 0; s.next < s.rows && compared < mostCompared; s.next++ {
		row := table.Row(s.next)
		if n := t.Node(row); n != nil && len(s.nodes) <= s.most && strings.Contains(n.Name, s.text) {
			s.nodes = append(s.nodes, n.Name)
		}
		for _, pl := range t.Pods(row) {
			s.compare(pl.Pod.Namespace, pl.Pod.Name)
		}
		compared += 1 + len(t.Pods(row))
	}
}

func (s *search) compare(namespace, name string) {
	if len(s.pods) > s.most {
		return
	}
	if strings.Contains(name, s.text) || strings.Contains(namespace, s.text) || strings.Contains(s.text, "/") && strings.Contains(namespace+"/"+name, s.text) {
		s.pods[namespace+"/"+name] = true
	}
}

func (s *search) found() *Found {
	f := &Found{Head: head("Found"), Pods: []string{}, Nodes: []string{}, More: len(s.pods) > s.most || len(s.nodes) > s.most}
	for pod := range s.pods { // any order: sorted below
		f.Pods = append(f.Pods, pod)
	}
	f.Nodes = append(f.Nodes, s.nodes...)
	slices.Sort(f.Pods)
	slices.Sort(f.Nodes)
	f.Pods, f.Nodes = f.Pods[:min(len(f.Pods), s.most)], f.Nodes[:min(len(f.Nodes), s.most)]
	return f
}
