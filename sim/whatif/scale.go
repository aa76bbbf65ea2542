package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/workload"
	"github.com/berth-scheduler/berth/sim"
)

// Scaled is up to how many replicas a workload fits, or how often the pods of a file do.
type Scaled struct {
	// Workload is kind/namespace/name, "" for a file.
	Workload string
	// Now is how many replicas the workload wants before the changes.
	Now int
	// File is where the objects are, "" for a workload. Pods counts those that are added each
	// time, by kind/namespace/name of a workload or pod.
	File string
	Pods map[string]int
	// Fits counts replicas that have a node at the end, those from the start too, or the times
	// that all pods of the file do.
	Fits int
	// Nodes counts by node the replicas, or the pods of the file.
	Nodes map[string]int
	// Stops is why the next one does not fit.
	Stops string
	// Nearest is the node that lacks least for it, nil if it is no resource that stops it.
	Nearest *Shortage
	// Notices are for the user.
	Notices []string
}

// Scale counts up to how many replicas a workload fits, or how often all pods of a file
// do, without an eviction, after all other pending pods, once the changes are made. what is
// [NAMESPACE/]KIND/NAME or a file.
func Scale(set *manifest.Set, in sim.Input, after []Change, what string, o Options) (*Scaled, error) {
	s := &scaling{fitting: &fitting{session: newSession(set, &in, o)}, Scaled: &Scaled{Nodes: map[string]int{}}}
	begin := s.beginFile
	if isWorkload(what) {
		begin = s.beginWorkload
	} else {
		s.File, s.Pods = what, map[string]int{}
	}
	notices, err := s.play(in, func() error { return begin(after, what) })
	if err != nil {
		return nil, err
	}
	s.Stops, s.Nearest, s.Notices = s.stop.why, s.nearest, notices
	s.count()
	return s.Scaled, nil
}

// isWorkload reports whether the word is [NAMESPACE/]KIND/NAME.
func isWorkload(word string) bool {
	parts := strings.Split(word, "/")
	n := len(parts)
	return (n == 2 || n == 3) && kinds[strings.ToLower(parts[n-2])] != ""
}

// scaling adds replicas of a workload, or pods of a file.
type scaling struct {
	*fitting
	*Scaled
	workload *workload.Workload // nil for a file
}

// count counts what has a node. Of a file, complete rounds count.
func (s *scaling) count() {
	keys := s.finished
	if s.workload != nil {
		counted := map[string]bool{s.probe: true}
		for _, key := range s.added {
			counted[key] = true
		}
		keys = s.added
		for _, p := range s.workload.Active(s.owned(s.workload)) {
			if key := p.Namespace + "/" + p.Name; !counted[key] {
				keys = append(keys, key)
			}
		}
		s.Fits = s.placed(keys)
	} else {
		s.Fits = s.rounds
	}
	for _, key := range keys {
		if p := s.cluster.Pod(key); p != nil && p.NodeName != "" {
			s.Nodes[p.NodeName]++
		}
	}
}

// beginWorkload takes away the replicas that wait, makes the changes, and finds the workload:
// before them, or after them if it is not there yet.
func (s *scaling) beginWorkload(after []Change, word string) error {
	w, err := s.scalable(word)
	if err != nil && len(after) == 0 {
		return err
	}
	if w != nil {
		s.Now = w.Replicas
		s.takePending(s.owned(w))
	}
	if err := s.begin(s.world, after); err != nil {
		return fmt.Errorf("--after: %w", err)
	}
	switch now, err := s.scalable(word); {
	case err == nil && w == nil:
		s.Now, w = now.Replicas, now
	case err == nil:
		w = now
	case w == nil:
		return err
	}
	s.workload, s.Workload = w, strings.ToLower(w.Kind)+"/"+w.Namespace+"/"+w.Name
	a, err := s.replicas(w)
	if a == nil {
		return err
	}
	more := joinScaled(groups{s.session}, w)
	switch a := a.(type) {
	case *ordinals:
		a.more = more
	case *copier:
		a.more, s.alike = more, true
	}
	s.adders = []adder{a}
	return err
}

// scalable returns the workload that the word names.
func (s *scaling) scalable(word string) (*workload.Workload, error) {
	w, err := s.session.workload(word)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--scale: %w", err)
	case w.Kind == "DaemonSet":
		return nil, fmt.Errorf("--scale: %s: a DaemonSet has a pod on each node", word)
	}
	return w, nil
}

// takePending takes away those of the pods that have no node.
func (s *scaling) takePending(pods []*v1.Pod) {
	for _, p := range pods {
		if p.Spec.NodeName == "" {
			s.dropPod(p.Namespace+"/"+p.Name, "added again, as long as there is a place")
		}
	}
}

// replicas returns what adds replicas of the workload, nil if admission refuses the first.
// They evict nobody.
func (s *scaling) replicas(w *workload.Workload) (adder, error) {
	never := v1.PreemptNever
	w.Template = *w.Template.DeepCopy()
	w.Template.Spec.PreemptionPolicy = &never
	have := w.Active(s.owned(w))
	if w.Kind == "StatefulSet" {
		return &ordinals{session: s.session, workload: w, have: have, each: 1}, nil
	}
	w.Replicas = len(have) + 1
	pods, err := s.make(w, have)
	if err != nil {
		return nil, fmt.Errorf("--scale: %w", err)
	}
	if len(pods) == 0 {
		if s.refused = s.refusalOf(w); s.refused == "" {
			return nil, fmt.Errorf("--scale: %s: makes no pods: it is paused without any, or its template has no containers", w.Title())
		}
		return nil, nil
	}
	s.takePending(pods)
	return &copier{session: s.session, api: pods[0], each: 1}, nil
}

// refusalOf returns why admission refuses a pod of the workload, "" if it refuses none.
func (s *session) refusalOf(w *workload.Workload) string {
	for _, key := range slices.Sorted(maps.Keys(s.set.Refused)) {
		if r := s.set.Refused[key]; w.Owns(r.Pod) {
			return r.Error()
		}
	}
	return ""
}

// ordinals adds pods of a StatefulSet, each with claims of its own.
type ordinals struct {
	*session
	workload *workload.Workload
	have     []*v1.Pod
	each     int
	more     int    // of the first round, beside each
	group    string // each round is one more of this group; "": its pods stay in theirs
	rounds   int
}

func (o *ordinals) scheduler() string {
	return cmp.Or(o.workload.Template.Spec.SchedulerName, v1.DefaultSchedulerName)
}

func (o *ordinals) add() (pods []string, refused string, err error) {
	n := o.each + o.more
	o.more, o.rounds = 0, o.rounds+1
	if o.group != "" {
		as := numbered(o.group, o.rounds)
		groups{o.session}.copyGroup(o.workload.Namespace, o.group, as)
		joinGroup(&o.workload.Template.ObjectMeta, &o.workload.Template.Spec, as)
	}
	for len(pods) < n {
		made, err := o.next()
		if err != nil || len(made) == 0 {
			return pods, o.refusalOf(o.workload), err
		}
		o.have = append(o.have, made...)
		for _, p := range made {
			pods = append(pods, p.Namespace+"/"+p.Name)
		}
	}
	return pods, "", nil
}

// next makes the pods of the first numbers that are free, none if admission refuses them.
func (o *ordinals) next() ([]*v1.Pod, error) {
	for o.workload.Replicas = len(o.have) + 1; ; o.workload.Replicas++ {
		made, err := o.make(o.workload, o.have)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--scale: %w", err)
		case len(made) > 0 || o.refusalOf(o.workload) != "":
			return made, nil
		case o.workload.Replicas > len(o.have)+len(o.pods): // each number below is taken by another pod
			return nil, fmt.Errorf("--scale: %s: makes no pods: its template has no containers", o.workload.Title())
		}
	}
}

// beginFile makes the changes and applies the file. The pods that come with it are what each
// round adds.
func (s *scaling) beginFile(after []Change, file string) error {
	if err := s.begin(s.world, after); err != nil {
		return fmt.Errorf("--after: %w", err)
	}
	known := map[*v1.Pod]bool{}
	for _, p := range s.set.Pods {
		known[p] = true
	}
	refused := maps.Clone(s.set.Refused)
	if err := s.apply(&Change{Operands: []string{file}}); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--scale: %s: is no workload, such as deployment/web, and no such file is there", file)
	} else if err != nil {
		return fmt.Errorf("--scale: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(s.set.Refused)) {
		if r := s.set.Refused[key]; refused[key].Pod != r.Pod && s.refused == "" {
			s.refused = key + ": " + r.Error()
		}
	}
	var added []*v1.Pod
	for _, p := range s.set.Pods {
		if kind, _ := workload.OfPod(p); !known[p] && p.Spec.NodeName == "" && kind != "DaemonSet" {
			added = append(added, p)
		}
	}
	if len(added) == 0 && s.refused == "" {
		return fmt.Errorf("--scale: %s: adds no pod that wants a node; name a workload that is there as deployment/web", file)
	}
	return s.partsOf(added)
}

// partsOf takes the pods of a file away, and finds what adds such pods: all that were made
// of a workload together, others one by one.
func (s *scaling) partsOf(pods []*v1.Pod) error {
	s.takePending(pods)
	parts := map[string]adder{}
	for _, p := range pods {
		key := "pod/" + p.Namespace + "/" + p.Name
		if s.set.Made[p] {
			key = s.workloadOf(p.Namespace + "/" + p.Name)
		}
		s.Pods[key]++
		switch a := parts[key].(type) {
		case *copier:
			a.each++
		case *ordinals:
			a.each++
		default:
			a, err := s.part(p)
			if err != nil {
				return err
			}
			parts[key] = a
			s.adders = append(s.adders, a)
		}
	}
	return nil
}

// part returns what adds pods like one of a file.
func (s *scaling) part(p *v1.Pod) (adder, error) {
	kind, name := workload.OfPod(p)
	group := groups{s.session}.groupOf(s.set.DecodePod(p))
	if kind != "StatefulSet" || !s.set.Made[p] {
		return &copier{session: s.session, api: p, each: 1, group: group}, nil
	}
	w, err := s.scalable(p.Namespace + "/" + kind + "/" + name)
	if err != nil {
		return nil, err
	}
	a, err := s.replicas(w)
	if o, ok := a.(*ordinals); ok {
		o.group = group
	}
	return a, err
}
