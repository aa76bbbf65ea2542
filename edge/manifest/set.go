package manifest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/edge/admission"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/workload"
)

// Set is the objects that were read, in the order of the input. Every object
// has a UID, every pod a namespace and a priority.
type Set struct {
	Nodes   []*v1.Node
	Pods    []*v1.Pod
	Budgets []*policyv1.PodDisruptionBudget
	// Namespaces are decoded, too: pod affinity may select by their labels.
	Namespaces []*object.Namespace
	// SelectorOwners are the Services and controllers, decoded.
	SelectorOwners []*object.SelectorOwner
	// Objects are claims, volumes and what else plugins read, decoded.
	Objects []object.Object
	// Ignored counts the objects of kinds that a simulation has no use for,
	// by apiVersion/kind.
	Ignored map[string]int
	// Newest is the latest creationTimestamp of all objects, zero where none
	// has any.
	Newest time.Time
	// Notices name what is legal and surely not meant.
	Notices []string
	// Expand says of which workloads in files pods are made.
	Expand Expand
	// Workloads are the objects of files whose controllers make pods. Running are
	// those of a cluster: their controllers made the pods.
	Workloads, Running []metav1.Object
	// Refused are the pods that admission refuses, by namespace/name. They are not among
	// Pods.
	Refused map[string]Refused
	// Made are the pods that were made of workloads in files. The cluster may not have them.
	Made map[*v1.Pod]bool
	// Hides reports whether an answer may tell nothing of the pods of a namespace; nil: it may
	// tell of all.
	Hides func(namespace string) bool
	// KeepAPI has DecodePod and DecodeNode keep the API objects, for plugins that read them.
	KeepAPI bool
	// Events are what the cluster said, in no order.
	Events []Event
	// FillBudgets gives budgets the status that their controller would, where it
	// has not. By default they allow no disruption.
	FillBudgets bool
	// Replace lets an object take the place of one of the same name. By default
	// it is an error.
	Replace bool
	// Strict makes an error of a field that is not known. Else it is left out,
	// with a notice: an API server of a later minor may have it.
	Strict bool
	// KeepWritten keeps pending pods and the objects that plugins read as they
	// were written (Written).
	KeepWritten bool
	// Redact, when set, replaces the names in each object; what the cluster said is left out then.
	Redact func(metav1.Object)
	// Trim leaves out of pods in files what no decision depends on, such as commands
	// and probes. It need only be JSON then.
	Trim bool
	// Reading is told of a stream that is read now, which may take as long as its
	// writer likes; what it returns is called when that is over.
	Reading func(name string) (over func())

	most      int64 // bytes of all files and streams
	read      int64 // bytes so far
	stdinRead bool
	written   map[string][]byte // by kind and key
	// Knows says of ResourceClaimTemplates and PriorityClasses whether all that there are
	// were added.
	Knows struct{ Templates, Classes bool }

	classes   decode.PriorityClasses
	templates map[string]*resourcev1.ResourceClaimTemplate // by namespace/name
	rules     *admission.Rules
	arrivals
	known   map[string]string // kind and key -> where
	uids    map[string]string // kind and UID -> where
	places  map[*v1.Pod]string
	unknown []*unknownField
	// unfilled tells of budgets without status.
	unfilled []string
	// What the files hold: kinds that make pods, and whether a pod is pending.
	makers  map[string]bool
	pending bool
}

// unknownField is a field that some objects of a kind have, and is not known.
type unknownField struct {
	kind, field string // without the positions in lists
	first       string // where it was seen first
	times       int
}

// NewSet returns an empty set.
func NewSet() *Set {
	return &Set{most: mostBytes, Ignored: map[string]int{}, known: map[string]string{}, uids: map[string]string{}, places: map[*v1.Pod]string{}, makers: map[string]bool{}, Made: map[*v1.Pod]bool{},
		written: map[string][]byte{}, templates: map[string]*resourcev1.ResourceClaimTemplate{},
		Refused: map[string]Refused{}, rules: admission.New(), arrivals: newArrivals()}
}

// Files adds the objects that the paths name ("-": stdin), decoding on the
// given number of workers. The error is about the first object, in the order
// of the input, that is wrong.
func (s *Set) Files(paths []string, stdin io.Reader, workers int) error {
	for _, path := range paths {
		sources, err := s.open(path, stdin)
		if err != nil {
			return err
		}
		for _, src := range sources {
			if err := s.source(src, workers); err != nil {
				return err
			}
		}
	}
	return nil
}

// source adds the objects of a stream. It looks at it hastily, and with care where
// anything is wrong.
func (s *Set) source(src source, workers int) error {
	raws, results, err := s.decode(src, true, workers)
	if err != nil || slices.ContainsFunc(results, func(d decoded) bool { return d.err != nil }) {
		if raws, results, err = s.decode(src, false, workers); err != nil {
			return err
		}
	}
	for i, d := range results {
		if d.err != nil {
			return d.err
		}
		if err := s.add(raws[i], d); err != nil {
			return err
		}
		if p, ok := d.object.(*v1.Pod); ok {
			s.pending = s.pending || p.Spec.NodeName == ""
		} else if makesPods[raws[i].key()] {
			s.makers[raws[i].key()] = true
			if d.object != nil {
				s.Workloads = append(s.Workloads, d.object)
			}
		}
	}
	return nil
}

func (s *Set) decode(src source, hasty bool, workers int) ([]raw, []decoded, error) {
	raws, err := objects(src, hasty, workers)
	if err != nil {
		return nil, nil, err
	}
	results := make([]decoded, len(raws))
	par.Rows(len(raws), workers, 64, func(rows par.Range) {
		var room []byte
		for i := rows.From; i < rows.To; i++ {
			r := raws[i]
			if hasty && s.Trim && r.key() == "v1/Pod" {
				var ok bool
				if room, ok = trim(room[:0], r.data, podUnread); !ok {
					results[i].err = errNotJSON
					continue
				}
				r.data = room
			}
			results[i] = r.decode(s.Expand != ExpandNone)
		}
	})
	return raws, results, nil
}

// Add adds an object that was read elsewhere. It checks the object, sets its
// defaults and refuses a duplicate. In errors, where names the origin of the
// object; kind is its kind, such as "v1/Node".
func (s *Set) Add(o metav1.Object, kind, where string) error {
	version, name := kind[:strings.LastIndex(kind, "/")], kind[strings.LastIndex(kind, "/")+1:]
	var written []byte
	if s.keeps(o) {
		var err error
		if written, err = json.Marshal(o); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	if err := admit(o, strings.ToLower(name)); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if makesPods[kind] {
		s.Running = append(s.Running, o)
	}
	return s.add(raw{where: where, apiVersion: version, kind: name, data: written}, decoded{object: o, created: o.GetCreationTimestamp().Time})
}

func (s *Set) add(r raw, d decoded) error {
	if d.created.After(s.Newest) {
		s.Newest = d.created
	}
	if d.object == nil {
		s.Ignored[r.key()]++
		return nil
	}
	o := d.object
	if e, ok := eventOf(o); ok {
		if s.Redact != nil {
			return nil
		}
		s.Events = append(s.Events, e)
		return nil
	}
	if s.Redact != nil {
		s.Redact(o)
		var err error
		if r.data, err = json.Marshal(o); err != nil {
			return fmt.Errorf("%s: %w", r.where, err)
		}
	}
	key := title(r.kindName(), o.GetNamespace(), o.GetName())
	first, twice := s.known[key]
	if twice && s.Replace {
		s.drop(o)
	} else if twice {
		return fmt.Errorf("%s: %s: metadata.name: the same object is in %s", r.where, key, first)
	}
	s.known[key] = r.where
	if s.keeps(o) {
		s.written[key] = r.data
	}
	for _, field := range d.unknown {
		if s.Strict {
			return fmt.Errorf("%s: %s: unknown field %q", r.where, key, field)
		}
		s.unknownField(r, key, field)
	}
	s.arrive(o, key)
	if o.GetUID() == "" {
		o.SetUID(types.UID(key))
	}
	uid := r.kind + " " + string(o.GetUID())
	if first, ok := s.uids[uid]; ok && !twice {
		return fmt.Errorf("%s: %s: metadata.uid: the object in %s has the same", r.where, key, first)
	}
	s.uids[uid] = r.where
	s.store(o, key, r.where)
	return nil
}

// store puts the object where its kind belongs.
func (s *Set) store(o metav1.Object, key, where string) {
	if s.rules.Add(o) {
		return
	}
	switch o := o.(type) {
	case *v1.Node:
		if len(o.Status.Allocatable) == 0 {
			s.Notices = append(s.Notices, fmt.Sprintf("%s: %s: status.allocatable: is empty, so nothing fits there", where, key))
		}
		s.Nodes = append(s.Nodes, o)
	case *v1.Pod:
		s.Pods = append(s.Pods, o)
		s.places[o] = where
	case *policyv1.PodDisruptionBudget:
		if !s.FillBudgets && o.Status.ObservedGeneration == 0 && o.Status.DisruptionsAllowed == 0 && len(o.Status.Conditions) == 0 {
			s.unfilled = append(s.unfilled, fmt.Sprintf("%s: %s: status: is empty, as in a manifest that was not applied to a cluster, where a controller writes it; the budget counts as allowing no disruption: write status.disruptionsAllowed to allow some", where, key))
		}
		s.Budgets = append(s.Budgets, o)
	case *v1.Namespace:
		s.Namespaces = append(s.Namespaces, decode.Namespace(o))
	case *schedulingv1.PriorityClass:
		s.classes.Add(o)
	case *resourcev1.ResourceClaimTemplate:
		s.templates[o.Namespace+"/"+o.Name] = o
	default:
		if f := decode.SelectorOwner(o); f != nil {
			s.SelectorOwners = append(s.SelectorOwners, f)
		} else if read := decode.Object(o); read != nil {
			if c, ok := o.(*v1.PersistentVolumeClaim); ok {
				s.claimsSeen = append(s.claimsSeen, seenClaim{c, len(s.Objects)})
			}
			s.Objects = append(s.Objects, read)
		}
	}
}

var position = regexp.MustCompile(`\[[0-9]+\]`)

// unknownField notes that the object has the field. One notice a kind and
// field will do: all objects of an API server have what is new there.
func (s *Set) unknownField(r raw, key, field string) {
	anywhere := position.ReplaceAllString(field, "[]")
	at := slices.IndexFunc(s.unknown, func(u *unknownField) bool { return u.kind == r.key() && u.field == anywhere })
	if at < 0 {
		at = len(s.unknown)
		s.unknown = append(s.unknown, &unknownField{kind: r.key(), field: anywhere, first: fmt.Sprintf("%s: %s: %s", r.where, key, field)})
	}
	s.unknown[at].times++
}

// Resolve admits the new pods, makes those of workloads and gives all pods their priority.
// Call it when all objects have been added.
func (s *Set) Resolve() error {
	for _, u := range s.unknown {
		notice := u.first + ": is not known and left out"
		if u.times > 1 {
			notice += fmt.Sprintf(" (%d times)", u.times)
		}
		s.Notices = append(s.Notices, notice)
	}
	if n := len(s.unfilled); n > 0 {
		notice := s.unfilled[0]
		if n > 1 {
			notice += fmt.Sprintf(" (%d budgets)", n)
		}
		s.Notices = append(s.Notices, notice)
	}
	if err := s.AdmitNew(); err != nil {
		return err
	}
	if err := s.expand(); err != nil {
		return err
	}
	s.uncounted()
	if s.FillBudgets {
		for _, b := range s.Budgets {
			workload.FillBudget(b, s.Pods)
		}
	}
	for _, p := range s.Pods {
		if err := s.classes.Resolve(p); err != nil {
			return fmt.Errorf("%s: %w", s.places[p], err)
		}
	}
	if s.Expand == ExpandNone && len(s.makers) > 0 && !s.pending {
		s.Notices = append(s.Notices, fmt.Sprintf("ignored: %s: a simulation places only pods, and no pod in the files is pending",
			strings.Join(slices.Sorted(maps.Keys(s.makers)), ", ")))
	}
	if len(s.Nodes) == 0 {
		s.Notices = append(s.Notices, "the input has no node, so no pod can be placed: give nodes with -f, or a cluster with --kubeconfig")
	}
	return nil
}
