package volumebinding

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// Verdicts are sets of these.
const (
	affinityConflict framework.Verdict = 1 << iota // the node does not reach a bound claim's volume
	noVolume                                       // a claim gets neither a free nor a new volume
	noSpace                                        // no new volume for a claim: capacity is short
	volumeGone                                     // the volume of a bound claim does not exist
	unsupported                                    // an error (withoutAttributes), alone in its set
)

// reasons holds kube-scheduler's reason of each verdict.
var reasons = []struct {
	verdict framework.Verdict
	text    string
}{
	{affinityConflict, "node(s) didn't match PersistentVolume's node affinity"},
	{noVolume, "node(s) didn't find available persistent volumes to bind"},
	{noSpace, "node(s) did not have enough free storage"},
	{volumeGone, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"},
}

// errTimeout is the error of a pod whose volumes are not bound within bindTimeoutSeconds. It has
// kube-scheduler's text, which users search for.
var errTimeout = errors.New("binding volumes: context deadline exceeded")

// kinds is the kinds of objects that the plugin reads.
var kinds = []object.Kind{object.PersistentVolumeClaims, object.PersistentVolumes, object.StorageClasses,
	object.CSINodes, object.CSIDrivers, object.CSIStorageCapacities}

// New returns the plugin; nil args stand for the defaults. Without the gate StorageCapacityScoring
// it does not score nodes. The error names the wrong fields.
func New(args *configv1.VolumeBindingArgs, f feature.Features) (framework.Plugin, error) {
	if err := ValidateArgs(nil, args, f).ToAggregate(); err != nil {
		return framework.Plugin{}, err
	}
	args = WithDefaults(args, f)
	b := &binder{timeout: time.Duration(*args.BindTimeoutSeconds) * time.Second, plans: map[types.UID]*plan{}}
	s := scorer{}
	if f.StorageCapacityScoring {
		s = newScorer(args.Shape)
	}
	pl := framework.Plugin{
		Name:             names.VolumeBinding,
		Reads:            framework.Reads{Kinds: kinds},
		EventsToRegister: eventsToRegister,
		SignPlugin: framework.SignPlugin{
			Locality:     framework.NodeOnly,
			SignRevision: signRevision,
			Sign:         sign,
		},
		PreFilter:     preFilter,
		FilterPlugin:  framework.FilterPlugin{Filter: filter, Explain: explain, Costly: true},
		PreScore:      s.preScore,
		ScorePlugin:   framework.ScorePlugin{Score: s.score},
		ReservePlugin: framework.ReservePlugin{Reserve: b.reserve, Unreserve: b.unreserve, Keeper: b},
		PreBindPlugin: framework.PreBindPlugin{
			PreBind:       b.preBind,
			WritesDone:    b.writesDone,
			WritesTimeout: framework.Timeout{After: b.timeout, Err: errTimeout},
		},
		PostBind: b.postBind,
	}
	if !f.VolumeAttributesClass {
		withoutAttributes(&pl)
	}
	return pl, nil
}

// withoutAttributes changes pl to its behaviour without the gate VolumeAttributesClass: a claim
// that waits for its first consumer and has a volumeAttributesClassName is an error on every node.
func withoutAttributes(pl *framework.Plugin) {
	pl.ErrorsFrom = unsupported
	pl.PreFilter = func(t *table.Table, p *object.Pod) framework.PreFilterResult {
		result := preFilter(t, p)
		if pc, ok := result.State.(*podClaims); ok && pc != nil {
			at := slices.IndexFunc(pc.toMatch, func(c *claim) bool { return c.Attributes != "" })
			if at >= 0 {
				pc.unsupported = pc.toMatch[at]
			}
		}
		return result
	}
}

// preFilter skips pods without PVCs, and returns the claims of others as the state for Filter. It
// rejects a pod with a claim that keeps it from every node, such as one that does not exist.
func preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	if !p.HasPVCs(true) {
		return framework.PreFilterResult{Skip: true}
	}
	pc, s := podClaimsOf(t, p)
	return framework.PreFilterResult{State: pc, Status: s}
}

// filter writes the verdict on each row for the pod's claims.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	pc := in.State.(*podClaims)
	for i, r := range rows {
		out[i] = framework.Fits
		if n := in.Table.Node(r); n != nil {
			out[i] = pc.on(in.Table, r, n, nil)
		}
	}
}

// explain returns the code and reasons of a verdict, which is a set. unsupported is an Error.
func explain(in *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
	if v == unsupported {
		reason := fmt.Sprintf("unsupported volumeAttributesClassName is set on claim %s when the feature-gate VolumeAttributesClass is disabled", in.State.(*podClaims).unsupported.Key())
		return decision.Blocker{Code: decision.Error, Reasons: []string{reason}}
	}
	var texts []string
	for _, r := range reasons {
		if v&r.verdict != 0 {
			texts = append(texts, r.text)
		}
	}
	return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: texts}
}
