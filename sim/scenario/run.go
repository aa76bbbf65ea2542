package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// Engine is what may differ between two plays of a story that must come to
// the same end.
type Engine struct {
	Seed     uint64
	Workers  int
	ViewsOff bool
	// Observe, when set, is shown every effect.
	Observe func(machine.Effect)
	// Watch, when set, follows the story beside the scheduler.
	Watch Watcher
}

// Watcher is shown what a story does.
type Watcher interface {
	// Directive is about to be done; an error ends the story there.
	Directive(*Step, *sim.World) error
	// Wrote is an API object that the story creates or changes. The scheduler is
	// told of it next.
	Wrote(metav1.Object)
	// Told is what the scheduler was told. Effects follow.
	Told(machine.Event)
}

// Play plays the story. The error names file and line of the first step that
// cannot be done or whose expectation is not met.
func (s *Story) Play(e Engine) error {
	p := newPlay(e)
	for i := range s.Steps {
		step := &s.Steps[i]
		if err := p.do(step); err != nil {
			return fmt.Errorf("%s:%d: %s: %w", s.File, step.Line, strings.Join(step.Words, " "), err)
		}
	}
	return nil
}

// play is a story under way.
type play struct {
	engine Engine
	gates  featuregate.MutableFeatureGate
	config *config.Config
	world  *sim.World // made by the first directive that needs it

	extender *extender // nil: none

	// nodes and pods are as the story wrote them.
	nodes map[string]*v1.Node
	pods  map[string]*v1.Pod
	made  int // pods made, for UIDs

	last    map[string]*decision.Decision   // by pod
	decided []string                        // pods, since it was last asked for
	notes   map[string]machine.PublishEvent // the last event about each pod
}

func newPlay(e Engine) *play {
	return &play{engine: e, gates: features.New(), nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{}, last: map[string]*decision.Decision{}, notes: map[string]machine.PublishEvent{}}
}

// do does what the directive says, and tells the scheduler of what changed.
func (p *play) do(s *Step) error {
	verb, words := s.Words[0], s.Words[1:]
	if s.Block != "" && verb != "config" && verb != "object" {
		return errors.New("takes no indented block")
	}
	switch verb {
	case "gates":
		return p.gate(words)
	case "config":
		return p.configure(s.Block)
	case "extender":
		return p.extend(words)
	}
	if err := p.start(); err != nil {
		return err
	}
	if p.engine.Watch != nil {
		if err := p.engine.Watch.Directive(s, p.world); err != nil {
			return err
		}
	}
	defer p.world.Deliver()
	switch verb {
	case "object":
		return p.object(s.Block)
	case "node", "pod":
		return p.create(verb, words, 0)
	case "nodes", "pods":
		return p.createMany(strings.TrimSuffix(verb, "s"), words)
	case "podgroup":
		return p.podGroup(words)
	case "update":
		return p.update(words)
	case "delete":
		return p.delete(words)
	case "schedule":
		p.world.Settle()
	case "cycle":
		if !p.world.Cycle() {
			return errors.New("no pod is ready")
		}
	case "advance":
		return p.pass(words, p.world.Advance)
	case "pause":
		return p.pass(words, func(d time.Duration) { p.world.Now = p.world.Now.Add(d) })
	case "exhaust":
		p.world.Exhaust()
	case "expect":
		return p.expect(words, s.Text)
	case "differs":
		return p.differs(words, s.Text)
	default:
		return errors.New("no such directive")
	}
	return nil
}

// gate sets feature gates, on which the configuration depends.
func (p *play) gate(words []string) error {
	if p.world != nil || p.config != nil {
		return errors.New("must be the first directive")
	}
	return p.gates.Set(strings.Join(words, ","))
}

func (p *play) configure(block string) error {
	if p.world != nil {
		return errors.New("must be the first directive")
	}
	c, err := config.With(p.gates).Decode([]byte(block), "configuration")
	p.config = c
	return err
}

// start makes the world where there is none.
func (p *play) start() error {
	if p.world != nil {
		return nil
	}
	if p.config == nil {
		p.config = config.With(p.gates).Default()
	}
	o, err := sim.OptionsUnder(p.config, p.gates)
	if err != nil {
		return err
	}
	o.Seed, o.Workers, o.ViewsOff, o.Check = p.engine.Seed, p.engine.Workers, p.engine.ViewsOff, true
	o.Explain = func(*object.Pod) bool { return true }
	if p.extender != nil {
		o.Extenders = p.extender.options()
	}
	p.world = sim.NewWorld(o, sim.Epoch)
	p.world.Observe = p.observe
	if p.extender != nil {
		p.world.Ask = p.extender.answer
	}
	if p.engine.Watch != nil {
		p.world.Told = p.engine.Watch.Told
	}
	return nil
}

func (p *play) observe(e machine.Effect) {
	if p.engine.Observe != nil {
		p.engine.Observe(e)
	}
	switch e := e.(type) {
	case machine.AttemptDone:
		p.last[e.Decision.Pod.String()] = e.Decision
		p.decided = append(p.decided, e.Decision.Pod.String())
	case machine.PublishEvent:
		p.notes[e.Pod.Key()] = e
	}
}

func (p *play) createMany(kind string, words []string) error {
	if len(words) < 2 {
		return errors.New("want a name and a number")
	}
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return fmt.Errorf("%q: want a number", words[1])
	}
	for i := range n {
		numbered := slices.Concat([]string{fmt.Sprintf("%s-%d", words[0], i)}, words[2:])
		if err := p.create(kind, numbered, i); err != nil {
			return err
		}
	}
	return nil
}

// create makes a node or pod; "#" in a value stands for its number.
func (p *play) create(kind string, words []string, number int) error {
	if len(words) == 0 {
		return errors.New("want a name")
	}
	attributes := make([]attribute, 0, len(words)-1)
	for _, w := range words[1:] {
		attributes = append(attributes, parseAttribute(strings.ReplaceAll(w, "#", strconv.Itoa(number))))
	}
	if kind == "node" {
		if p.nodes[words[0]] != nil {
			return fmt.Errorf("node %s: exists already", words[0])
		}
		return p.setNode(newNode(words[0]), attributes)
	}
	if p.pods[key(words[0])] != nil {
		return fmt.Errorf("pod %s: exists already", words[0])
	}
	return p.setPod(newPod(words[0]), attributes)
}

func (p *play) update(words []string) error {
	if len(words) < 2 {
		return errors.New("want node or pod, and a name")
	}
	var attributes []attribute
	for _, w := range words[2:] {
		attributes = append(attributes, parseAttribute(w))
	}
	switch words[0] {
	case "node":
		if n := p.nodes[words[1]]; n != nil {
			return p.setNode(n.DeepCopy(), attributes)
		}
	case "pod":
		if pod := p.pods[key(words[1])]; pod != nil {
			return p.setPod(pod.DeepCopy(), attributes)
		}
	default:
		return fmt.Errorf("%q: want node or pod", words[0])
	}
	return fmt.Errorf("%s %s: does not exist", words[0], words[1])
}

func (p *play) setNode(n *v1.Node, attributes []attribute) error {
	for _, a := range attributes {
		if err := setNode(n, a); err != nil {
			return err
		}
	}
	decode.DefaultNode(n)
	if problems := decode.CheckNode(n); len(problems) > 0 {
		return fmt.Errorf("node %s: %w", n.Name, problems[0])
	}
	p.nodes[n.Name] = n
	p.wrote(n)
	p.world.Cluster.SetNode(decode.Node(n))
	return nil
}

func (p *play) setPod(pod *v1.Pod, attributes []attribute) error {
	for _, a := range attributes {
		if err := setPod(pod, a); err != nil {
			return err
		}
	}
	if pod.UID == "" {
		p.made++
		pod.UID = types.UID(fmt.Sprintf("%s-%d", pod.Name, p.made))
	}
	decode.DefaultPod(pod)
	if problems := decode.CheckPod(pod); len(problems) > 0 {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, problems[0])
	}
	var classes decode.PriorityClasses
	if err := classes.Resolve(pod); err != nil {
		return err
	}
	p.pods[pod.Namespace+"/"+pod.Name] = pod
	p.wrote(pod)
	o := decode.Pod(pod)
	if p.extender != nil {
		o.API = pod // extenders are told of it
	}
	cluster := p.world.Cluster
	if now := cluster.Pod(o.Key()); now != nil && now.UID == o.UID {
		// What the scheduler wrote stays; the story may say more.
		if now.NodeName != "" {
			o.NodeName, o.Started = now.NodeName, now.Started
		} else if o.NominatedNode == "" {
			o.NominatedNode = now.NominatedNode
		}
		o.Scheduled = now.Scheduled
	}
	cluster.SetPod(o)
	return nil
}

// object creates or replaces what is written as YAML.
func (p *play) object(block string) error {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal([]byte(block), &head); err != nil {
		return err
	}
	switch head.Kind {
	case "Node":
		n := &v1.Node{}
		if err := yaml.UnmarshalStrict([]byte(block), n); err != nil {
			return err
		}
		return p.setNode(n, nil)
	case "Pod":
		pod := &v1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(block), pod); err != nil {
			return err
		}
		return p.setPod(pod, nil)
	case "Namespace":
		n := &v1.Namespace{}
		if err := yaml.UnmarshalStrict([]byte(block), n); err != nil {
			return err
		}
		p.wrote(n)
		p.world.Cluster.SetNamespace(decode.Namespace(n))
		return nil
	case "PodDisruptionBudget":
		b := &policyv1.PodDisruptionBudget{}
		if err := yaml.UnmarshalStrict([]byte(block), b); err != nil {
			return err
		}
		p.wrote(b)
		p.world.Cluster.SetBudget(decode.Budget(b))
		return nil
	}
	if make := selectorOwners[head.Kind]; make != nil {
		o := make()
		if err := yaml.UnmarshalStrict([]byte(block), o); err != nil {
			return err
		}
		if o.GetNamespace() == "" {
			o.SetNamespace(v1.NamespaceDefault)
		}
		p.wrote(o)
		p.world.Cluster.SetSelectorOwner(decode.SelectorOwner(o))
		return nil
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	if kind, known := object.KindOf(head.Kind + "." + group); known {
		return p.setObject(kind, block)
	}
	if kind, known := object.KindOf(head.Kind); known {
		return p.setObject(kind, block)
	}
	return fmt.Errorf("kind %q: want Node, Pod, Namespace, PodDisruptionBudget, Service, ReplicationController, ReplicaSet, StatefulSet, or one of %s",
		head.Kind, strings.Join(object.KindNames(), ", "))
}

func (p *play) wrote(o metav1.Object) {
	if p.engine.Watch != nil {
		p.engine.Watch.Wrote(o)
	}
}

// differs marks what kube-scheduler does otherwise, on purpose: conform looks if it
// does.
func (p *play) differs(words []string, text string) error {
	if len(words) != 1 || text == "" {
		return errors.New("want one pod, and after a colon what differs")
	}
	if p.pods[key(words[0])] == nil {
		return errors.New("it does not exist")
	}
	return nil
}

// selectorOwners are the kinds that say which pods belong together.
var selectorOwners = map[string]func() metav1.Object{
	"Service":               func() metav1.Object { return &v1.Service{} },
	"ReplicationController": func() metav1.Object { return &v1.ReplicationController{} },
	"ReplicaSet":            func() metav1.Object { return &appsv1.ReplicaSet{} },
	"StatefulSet":           func() metav1.Object { return &appsv1.StatefulSet{} },
}

func (p *play) delete(words []string) error {
	lenient := len(words) == 3 && words[0] == "pod" && words[2] == "ignore-not-found"
	if len(words) != 2 && !lenient {
		return errors.New("want node or pod, and a name")
	}
	switch words[0] {
	case "node":
		delete(p.nodes, words[1])
		return p.world.Cluster.DeleteNode(words[1])
	case "pod":
		if lenient && p.world.Cluster.Pod(key(words[1])) == nil {
			return nil
		}
		delete(p.pods, key(words[1]))
		return p.world.Cluster.DeletePod(key(words[1]))
	}
	if owner := selectorOwners[words[0]]; owner != nil {
		namespace, name, _ := strings.Cut(key(words[1]), "/")
		return p.world.Cluster.DeleteSelectorOwner(decode.SelectorOwner(owner()).Kind, namespace, name)
	}
	if kind, known := object.KindOf(words[0]); known {
		namespace, name, found := strings.Cut(words[1], "/")
		if !found {
			namespace, name = "", words[1]
			if kind.Namespaced() {
				namespace = v1.NamespaceDefault
			}
		}
		p.world.Cluster.DeleteObject(kind, namespace, name)
		return nil
	}
	return fmt.Errorf("%q: want node or pod, or a kind such as Service or PersistentVolume", words[0])
}

// pass has the time of the one word pass by.
func (p *play) pass(words []string, by func(time.Duration)) error {
	if len(words) != 1 {
		return errors.New("want a duration")
	}
	d, err := time.ParseDuration(words[0])
	if err != nil {
		return err
	}
	if d < 0 {
		return errors.New("time does not go back")
	}
	by(d)
	return nil
}

// key is namespace/name of a pod that a story names.
func key(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return v1.NamespaceDefault + "/" + name
}
