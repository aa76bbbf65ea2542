package whatif

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/generate"
)

// reading reads a cluster anew.
type reading func(t *testing.T) (*manifest.Set, machine.Options)

// Each fix that is found for a pod of a case leaves it placed once the controllers have
// done what they do, whether it waits alone or with the others of the case.
func TestFixesOfCasesHoldWhenPlayed(t *testing.T) {
	for _, path := range cases(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			read := func(t *testing.T) (*manifest.Set, machine.Options) {
				set, err := fromFile(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				return resolved(t, set, config.Default())
			}
			t.Logf("%d fixes", allFixesHold(t, read))
		})
	}
}

// cases are the paths of the tool's cases but the one that is refused.
func cases(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../tool/testdata/cases/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "/misspelt-kind.yaml") })
}

// fromFile reads the cluster of a file ("-": from stdin).
func fromFile(path string, stdin io.Reader) (*manifest.Set, error) {
	set := manifest.NewSet()
	set.KeepWritten, set.FillBudgets = true, true
	return set, set.Files([]string{path}, stdin, 1)
}

// allFixesHold plays each fix of each pod that waits, and returns how many there are.
func allFixesHold(t *testing.T, read reading) (fixes int) {
	set, _ := read(t)
	for _, p := range set.Pods {
		if p.Spec.NodeName == "" {
			pod := p.Namespace + "/" + p.Name
			fixes += fixesHold(t, read, pod, false) + fixesHold(t, read, pod, true)
		}
	}
	return fixes
}

var (
	mutations = flag.Uint64("mutations", 100, "how many mutated cases TestFixesOfMutatedCasesHold plays")
	mutation  = flag.Uint64("mutation", 0, "the first of them")
)

// The same holds for cases with parts exchanged, but for those that are refused.
func TestFixesOfMutatedCasesHold(t *testing.T) {
	paths := cases(t)
	fixes, refused := 0, 0
	for seed := *mutation; seed < *mutation+*mutations && !t.Failed(); seed++ {
		file, err := os.ReadFile(paths[seed%uint64(len(paths))])
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := generate.Mutated(file, seed)
		if err != nil {
			t.Fatal(err)
		}
		read := func(t *testing.T) (*manifest.Set, machine.Options) {
			set, _ := fromFile("-", bytes.NewReader(cluster))
			return resolved(t, set, config.Default())
		}
		if set, err := fromFile("-", bytes.NewReader(cluster)); err != nil || set.Resolve() != nil {
			refused++
			continue
		}
		fixes += allFixesHold(t, read)
		if t.Failed() {
			t.Errorf("-mutation %d, %s:\n%s", seed, paths[seed%uint64(len(paths))], cluster)
		}
	}
	t.Logf("%d fixes hold, %d clusters were refused", fixes, refused)
}

// The same holds for the pods that are stuck in generated clusters, one by one: whole, these have
// preemptions of preemptions.
func TestFixesHoldWhenPlayed(t *testing.T) {
	worlds, mostStuck := uint64(4), 3
	if testing.Short() {
		worlds, mostStuck = 1, 2
	}
	fixes := 0
	for _, mix := range generate.Mixes() {
		if mix == "extenders" {
			continue
		}
		for seed := range worlds {
			read := func(t *testing.T) (*manifest.Set, machine.Options) { return fromWorld(t, mix, 200+seed) }
			set, _ := read(t)
			stuck := 0
			for _, p := range set.Pods {
				if p.Spec.NodeName == "" && p.DeletionTimestamp == nil && stuck < mostStuck {
					if n := fixesHold(t, read, p.Namespace+"/"+p.Name, false); n > 0 {
						stuck++
						fixes += n
					}
				}
			}
			if t.Failed() {
				t.Fatalf("mix %s, seed %d", mix, 200+seed)
			}
		}
	}
	t.Logf("%d fixes", fixes)
}

func fromWorld(t *testing.T, mix string, seed uint64) (*manifest.Set, machine.Options) {
	t.Helper()
	w, err := generate.Cluster(mix, seed)
	if err != nil {
		t.Fatal(err)
	}
	set := manifest.NewSet()
	set.KeepWritten = true
	all := slices.Concat(w.SelectorOwners, w.Objects)
	for _, n := range w.Nodes {
		all = append(all, n)
	}
	for i, p := range w.Bound {
		own(p, i)
		all = append(all, p)
	}
	for _, p := range w.Pending {
		all = append(all, p)
	}
	for _, b := range w.Budgets {
		all = append(all, b)
	}
	for _, n := range w.Namespaces {
		all = append(all, n)
	}
	for _, o := range all {
		for i := range decode.Kinds {
			if k := &decode.Kinds[i]; reflect.TypeOf(k.New()) == reflect.TypeOf(o) {
				if err := set.Add(o, k.Key(), "world"); err != nil {
					t.Skip(err)
				}
			}
		}
	}
	c := config.Default()
	if w.Config != "" {
		if c, err = config.Decode([]byte(w.Config), mix); err != nil {
			t.Fatal(err)
		}
	}
	return resolved(t, set, c)
}

// own gives most pods a controller: a ReplicaSet or a DaemonSet.
func own(p *v1.Pod, i int) {
	if len(p.OwnerReferences) > 0 {
		return
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Name: fmt.Sprintf("owner-%d", i), UID: "owner", Controller: new(true)}
	switch i % 3 {
	case 0:
		return
	case 1:
		owner.Kind = "ReplicaSet"
	case 2:
		owner.Kind = "DaemonSet"
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &v1.Affinity{}
		}
		p.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{p.Spec.NodeName}}},
		}}}}
	}
	p.OwnerReferences = []metav1.OwnerReference{owner}
}

func resolved(t *testing.T, set *manifest.Set, c *config.Config) (*manifest.Set, machine.Options) {
	t.Helper()
	if err := set.Resolve(); err != nil {
		t.Fatal(err)
	}
	options, err := sim.Options(c)
	if err != nil {
		t.Fatal(err)
	}
	return set, options
}

// around reads the cluster with the pod as the only one that waits, or with the others, too.
func around(t *testing.T, read reading, pod string, others bool) (*manifest.Set, sim.Input) {
	set, options := read(t)
	for _, p := range slices.Clone(set.Pods) {
		if !others && p.Spec.NodeName == "" && p.Namespace+"/"+p.Name != pod {
			set.Remove(p)
		}
	}
	in := sim.Input{Start: set.Newest, Namespaces: set.Namespaces, SelectorOwners: set.SelectorOwners, Objects: set.Objects, Machine: options}
	for _, n := range set.Nodes {
		in.Nodes = append(in.Nodes, decode.Node(n))
	}
	for _, p := range set.Pods {
		in.Pods = append(in.Pods, decode.Pod(p))
	}
	for _, b := range set.Budgets {
		in.Budgets = append(in.Budgets, decode.Budget(b))
	}
	return set, in
}

// fixesHold plays each fix of the pod, with or without the others that wait, and returns how many
// were played.
func fixesHold(t *testing.T, read reading, pod string, others bool) (fixesPlayed int) {
	t.Helper()
	set, in := around(t, read, pod, others)
	world, err := sim.Load(in)
	if err != nil {
		return 0
	}
	cluster := &why.Cluster{Machine: world.Machine, Set: set}
	api, err := cluster.Find(pod, "")
	if err != nil {
		t.Fatal(err)
	}
	fixes := cluster.Why(t.Context(), api).Fixes
	for i := range fixes {
		if len(fixes[i].First) > 0 && len(fixes[i].More) == 0 {
			continue // it says that others may take its place
		}
		fixesPlayed++
		f := fixes[i].Extended()
		if err := played(t, read, pod, others, &f); err != nil {
			text, _ := json.Marshal(fixes[i])
			t.Errorf("%s, others %t: %v: %s", pod, others, err, text)
		}
	}
	return fixesPlayed
}

// played carries the fix out once the cluster is at rest, and lets it come to rest again.
func played(t *testing.T, read reading, pod string, others bool, f *fix.Fix) error {
	set, in := around(t, read, pod, others)
	s := newSession(set, &in, Options{IgnoreBudgets: true})
	in.Begin = func(w *sim.World) error {
		s.cluster = w.Cluster
		return nil
	}
	done := false
	var failed error
	in.Idle = func(w *sim.World) bool {
		if done {
			return false
		}
		done = true
		w.Advance(time.Minute) // until it waits out no backoff
		for i := range f.Changes {
			if failed = s.carryOut(&f.Changes[i], pod); failed != nil {
				return false
			}
		}
		return true
	}
	in.Evicted = func(_ *sim.Cluster, victim *object.Pod, endless bool) { s.again(victim.Key(), endless) }
	r, err := sim.Run(in)
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case r.Placed[pod] == "":
		return fmt.Errorf("played, the pod is not placed: %s", r.Unplaced[pod])
	}
	return nil
}

// carryOut makes a change of a fix, as kubectl and the controllers do.
func (s *session) carryOut(c *fix.Change, pod string) error {
	switch {
	case c.Delete:
		p := s.cluster.Pod(c.Namespace + "/" + c.Name)
		if p == nil {
			return fmt.Errorf("there is no pod %s/%s", c.Namespace, c.Name)
		}
		if p.Controller.Replacement == object.NoReplacement {
			s.dropPod(p.Key(), "deleted")
			return nil
		}
		s.lose(p, "")
		return nil
	case c.Create != nil:
		return s.create(c)
	case c.Kind == "Node":
		n := s.nodes[c.Name].DeepCopy()
		if err := patched(s.nodes[c.Name], c.Patch, n); err != nil {
			return err
		}
		s.setNode(n)
		return nil
	case c.Kind == "Pod" && c.Namespace+"/"+c.Name != pod: // a resize is taken back
		i := slices.IndexFunc(s.set.Pods, func(p *v1.Pod) bool { return p.Namespace == c.Namespace && p.Name == c.Name })
		p := &v1.Pod{}
		if err := patched(s.set.Pods[i], c.Patch, p); err != nil {
			return err
		}
		s.setPod(p)
		return nil
	case c.Kind == "Pod":
		p := &v1.Pod{}
		if err := patched(json.RawMessage(s.set.Written("Pod", c.Namespace, c.Name)), c.Patch, p); err != nil {
			return err
		}
		if err := s.set.AdmitPod(p); err != nil {
			return err
		}
		_ = s.cluster.DeletePod(pod) // it is there
		old := p.UID
		p.UID += "-again"
		s.releaseClaims(old, decode.Pod(p))
		s.setPod(p)
		return nil
	}
	kind, ok := object.KindOf(c.Kind)
	old := s.cluster.Object(kind, c.Namespace, c.Name)
	if !ok || old == nil {
		return fmt.Errorf("there is no %s %s/%s", c.Kind, c.Namespace, c.Name)
	}
	changed := decode.Empty(kind)
	if err := patched(json.RawMessage(s.set.Written(c.Kind, c.Namespace, c.Name)), c.Patch, changed); err != nil {
		return err
	}
	if err := manifest.Check(changed, c.Kind); err != nil { // it gives defaults
		return err
	}
	changed.SetNamespace(old.Head().Namespace)
	changed.SetUID(old.Head().UID)
	s.cluster.SetObject(decode.Object(changed))
	return nil
}

func (s *session) create(c *fix.Change) error {
	if n, ok := c.Create.(*v1.Node); ok {
		if err := s.set.Add(n.DeepCopy(), "v1/Node", "the fix"); err != nil {
			return err
		}
		added := s.set.Nodes[len(s.set.Nodes)-1]
		like, _, _ := strings.Cut(n.Name, "-copy")
		s.nodes[n.Name] = added
		s.cluster.SetNode(decode.Node(added))
		s.copyParts(like, n.Name)
		if err := s.runDaemons(like, []*v1.Node{added}); err != nil {
			return err
		}
		return s.runStatic(like, []*v1.Node{added})
	}
	objects, owners := len(s.set.Objects), len(s.set.SelectorOwners)
	if err := s.set.Add(c.Create.(metav1.Object), c.APIVersion+"/"+c.Kind, "the fix"); err != nil {
		return err
	}
	s.tellNew(objects, owners)
	return nil
}

// patched applies the operations to the object, and decodes what comes of it.
func patched(o any, ops []fix.Op, into any) error {
	before, err := json.Marshal(o)
	if err != nil {
		return err
	}
	text, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return err
	}
	value := reflect.ValueOf(into).Elem()
	value.SetZero()
	return json.Unmarshal(after, into)
}
