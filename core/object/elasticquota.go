package object

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/resource"
)

// ElasticQuota is what the scheduler reads of one ElasticQuota: what the pods of a
// namespace are guaranteed together, and what they may use at most.
type ElasticQuota struct {
	Meta
	Created time.Time
	// Min and Max are spec.min and spec.max; nil if they are absent. No amount is negative,
	// and none of Min is above that of Max.
	Min, Max Amounts
	// Parent is the key of the ElasticQuota that this one is a part of, "" for none.
	Parent string
	// Parts are the namespaces whose ElasticQuotas may name this one as their Parent; "*"
	// stands for all.
	Parts []string
	// Unreadable says what of min or max cannot be read, and why; "" if all can. Until that is
	// mended, no pod of the namespace is placed, and none is preempted for another queue.
	Unreadable string
	// Faults says what of the object is wrong, and what counts instead; nil for nothing.
	Faults []string
	// Used is status.used, as the API shows it.
	Used Amounts
}

// Alike reports whether two states of an ElasticQuota are equal in all but the version, the
// status and Recorded.
func (q *ElasticQuota) Alike(r *ElasticQuota) bool {
	return q.UID == r.UID && q.Namespace == r.Namespace && q.Name == r.Name && q.Created.Equal(r.Created) && q.Parent == r.Parent && slices.Equal(q.Parts, r.Parts) &&
		(q.Min == nil) == (r.Min == nil) && (q.Max == nil) == (r.Max == nil) &&
		slices.Equal(q.Min, r.Min) && slices.Equal(q.Max, r.Max) && q.Unreadable == r.Unreadable && slices.Equal(q.Faults, r.Faults)
}

// Annotations of an ElasticQuota.
const (
	ParentAnnotation = "berth.dev/parent-quota" // its Parent
	PartsAnnotation  = "berth.dev/part-quotas"  // its Parts, separated by commas
)

// Admits reports whether Parts lets an ElasticQuota of the namespace be a part of this one.
// What a part uses counts here, too, and its pods may take back what this one is guaranteed: so
// whoever writes the part does not decide alone.
func (q *ElasticQuota) Admits(namespace string) bool {
	return slices.Contains(q.Parts, namespace) || slices.Contains(q.Parts, "*")
}

// Amounts is a list of amounts of named resources as a quota holds it, sorted by name. It
// tells a resource that it lists as 0 from one that it does not list.
type Amounts []Amount

// Amount is an amount of one resource, in the units of resource.Vector.
type Amount struct {
	Name  v1.ResourceName
	Value int64
}

// Of returns the amount of the named resource; false if the list has none.
func (l Amounts) Of(name v1.ResourceName) (int64, bool) {
	at, listed := slices.BinarySearchFunc(l, name, func(a Amount, name v1.ResourceName) int { return cmp.Compare(a.Name, name) })
	if !listed {
		return 0, false
	}
	return l[at].Value, true
}

// Set sets the amount of the resource to a, and adds the resource if the list has none of it.
func (l *Amounts) Set(a Amount) {
	at, listed := slices.BinarySearchFunc(*l, a.Name, func(a Amount, name v1.ResourceName) int { return cmp.Compare(a.Name, name) })
	if listed {
		(*l)[at] = a
		return
	}
	*l = slices.Insert(*l, at, a)
}

// Quantity formats the amount for people: 500m.
func (a Amount) Quantity() string { return resource.Quantity(a.Name, a.Value).String() }

// String formats the amounts for people: cpu 500m, memory 1Gi.
func (l Amounts) String() string {
	texts := make([]string, len(l))
	for i, a := range l {
		texts[i] = string(a.Name) + " " + a.Quantity()
	}
	return strings.Join(texts, ", ")
}
