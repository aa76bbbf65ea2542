package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	ours "github.com/berth-scheduler/berth/core/resource"
)

// ElasticQuota is the API object of scheduling.x-k8s.io/v1alpha1, which a
// CustomResourceDefinition defines (deploy/elasticquotas.yaml).
type ElasticQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ElasticQuotaSpec   `json:"spec,omitzero"`
	Status            ElasticQuotaStatus `json:"status,omitzero"`
}

// ElasticQuotaSpec is what the pods of a namespace are guaranteed, and what they may use.
type ElasticQuotaSpec struct {
	Min Quantities `json:"min,omitzero"`
	Max Quantities `json:"max,omitzero"`
}

// ElasticQuotaStatus is what they use.
type ElasticQuotaStatus struct {
	Used Quantities `json:"used,omitzero"`
}

// ElasticQuotaList is a list of ElasticQuotas.
type ElasticQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticQuota `json:"items"`
}

// Quantities are amounts by the name of the resource, as written. An API server checks of a
// custom resource's quantities only how they look, and exact arithmetic on some that look
// right would never end. What is not a list of amounts is kept as text under the name "".
type Quantities map[v1.ResourceName]QuantityText

// QuantityText is a quantity as written, as a JSON number or a text. What is neither is kept
// as JSON.
type QuantityText string

// An API server serves what the CustomResourceDefinition of its cluster lets through, and an
// error here would end the list and the watch of all ElasticQuotas. So none of these returns
// one: what cannot be read is kept, and elasticQuota says what is wrong with it.

// UnmarshalJSON keeps what is no number and no text as it is.
func (q *QuantityText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(q))
	}
	*q = QuantityText(data)
	return nil
}

// UnmarshalJSON keeps what is no list under the name "".
func (q *Quantities) UnmarshalJSON(data []byte) error {
	var list map[v1.ResourceName]QuantityText
	if json.Unmarshal(data, &list) != nil {
		list = Quantities{"": QuantityText(data)}
	}
	*q = list
	return nil
}

// UnmarshalJSON keeps what is no spec as if it stood in max.
func (s *ElasticQuotaSpec) UnmarshalJSON(data []byte) error {
	type plain ElasticQuotaSpec
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		s.Max = Quantities{"": QuantityText(data)}
	}
	return nil
}

// UnmarshalJSON drops what is no status: it is written anew.
func (s *ElasticQuotaStatus) UnmarshalJSON(data []byte) error {
	type plain ElasticQuotaStatus
	if json.Unmarshal(data, (*plain)(s)) != nil {
		*s = ElasticQuotaStatus{}
	}
	return nil
}

// badMetadata begins the text that is kept of metadata that cannot be read.
const badMetadata = "metadata cannot be read: "

// UnmarshalJSON keeps of metadata that cannot be read what identifies the object.
func (q *ElasticQuota) UnmarshalJSON(data []byte) error {
	type plain ElasticQuota
	err := json.Unmarshal(data, (*plain)(q))
	if err == nil {
		return nil
	}
	var known struct {
		Metadata struct {
			Namespace, Name, ResourceVersion string
			UID                              types.UID
		}
	}
	_ = json.Unmarshal(data, &known) // as far as it goes
	m := &known.Metadata
	*q = ElasticQuota{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion, UID: m.UID},
		Spec: ElasticQuotaSpec{Max: Quantities{"": QuantityText(badMetadata + err.Error())}}}
	return nil
}

// customScheme knows the kinds that CustomResourceDefinitions define. client-go's own scheme
// does not: whoever links Berth may give it types of the same names.
var customScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"}) // for errors
	AddCustomToScheme(s)
	return s
}()

var customCodecs = serializer.NewCodecFactory(customScheme)

// AddCustomToScheme adds the kinds that CustomResourceDefinitions define to the scheme.
func AddCustomToScheme(s *runtime.Scheme) {
	version := object.ElasticQuotas.GroupVersion()
	s.AddKnownTypes(version, &ElasticQuota{}, &ElasticQuotaList{}, &PodGroup{}, &PodGroupList{})
	metav1.AddToGroupVersion(s, version)
}

// strictQuota takes every value of an ElasticQuota's fields. Decoding into it finds fields that an
// ElasticQuota does not have, and fields that stand twice (Kind.Strict).
type strictQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Min any `json:"min"`
		Max any `json:"max"`
	} `json:"spec"`
	Status struct {
		Used any `json:"used"`
	} `json:"status"`
}

// DeepCopyObject implements runtime.Object.
func (q *ElasticQuota) DeepCopyObject() runtime.Object { return q.deepCopy() }

func (q *ElasticQuota) deepCopy() *ElasticQuota {
	c := &ElasticQuota{TypeMeta: q.TypeMeta, Spec: ElasticQuotaSpec{maps.Clone(q.Spec.Min), maps.Clone(q.Spec.Max)}, Status: ElasticQuotaStatus{maps.Clone(q.Status.Used)}}
	q.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}

// DeepCopyObject implements runtime.Object.
func (l *ElasticQuotaList) DeepCopyObject() runtime.Object {
	c := &ElasticQuotaList{TypeMeta: l.TypeMeta, Items: make([]ElasticQuota, len(l.Items))}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items[i] = *l.Items[i].deepCopy()
	}
	return c
}

// Marshal returns the form in which a record holds the object. There is no protobuf of
// custom resources.
func (q *ElasticQuota) Marshal() ([]byte, error) { return json.Marshal(q) }

// Unmarshal is the inverse of Marshal.
func (q *ElasticQuota) Unmarshal(data []byte) error { return json.Unmarshal(data, q) }

func elasticQuota(q *ElasticQuota) *object.ElasticQuota {
	decoded := &object.ElasticQuota{Meta: meta(object.ElasticQuotas, &q.ObjectMeta), Created: q.CreationTimestamp.Time,
		Parent: q.Annotations[object.ParentAnnotation], Parts: strings.FieldsFunc(q.Annotations[object.PartsAnnotation], func(r rune) bool { return r == ',' || r == ' ' })}
	r := quantityReader{}
	decoded.Min = r.limits("spec.min", q.Spec.Min)
	decoded.Max = r.limits("spec.max", q.Spec.Max)
	decoded.Used = (&quantityReader{}).amounts("status.used", q.Status.Used)
	faults := r.faults
	if len(r.unreadable) > 0 {
		decoded.Unreadable = strings.Join(r.unreadable, "; ")
		faults = append(faults, fmt.Sprintf("%s; until that is mended no pod of its namespace is placed, and none is preempted for another quota", decoded.Unreadable))
	}
	for i := range decoded.Min {
		a := &decoded.Min[i]
		if most, bounded := decoded.Max.Of(a.Name); bounded && a.Value > most {
			faults = append(faults, fmt.Sprintf("spec.min of %s, %s, is more than spec.max, %s, which counts as min", a.Name, a.Quantity(), object.Amount{Name: a.Name, Value: most}.Quantity()))
			a.Value = most
		}
	}
	if len(decoded.Min)+len(decoded.Max)+len(r.unreadable) == 0 {
		faults = append(faults, "it names no resource in spec.min and spec.max, so it bounds nothing and guarantees nothing")
	}
	if namespace, name, _ := strings.Cut(decoded.Parent, "/"); decoded.Parent != "" && (namespace == "" || name == "") {
		faults = append(faults, fmt.Sprintf("its annotation %s is %q, and should be NAMESPACE/NAME; it has no parent", object.ParentAnnotation, decoded.Parent))
		decoded.Parent = ""
	}
	decoded.Faults = faults
	return decoded
}

// unreasonable matches quantities on which exact arithmetic takes forever.
var unreasonable = regexp.MustCompile(`[eE][-+]?[0-9]{4}|[0-9]{101}`)

// parse returns the quantity, or an error if the text is none.
func (q QuantityText) parse() (resource.Quantity, error) {
	text := strings.TrimSpace(string(q))
	if unreasonable.MatchString(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

// Redact replaces what is no quantity, as it may say anything.
func (q Quantities) Redact() {
	for name, text := range q { // any order: each by itself
		if _, err := text.parse(); err != nil {
			q[name] = "redacted"
		}
	}
}

// quantityReader reads lists of quantities, and collects what is wrong with them.
type quantityReader struct {
	faults     []string // what does not count as it is written
	unreadable []string
}

// mostNames is how many resources a min or max may name. Each has metrics, and is compared
// whenever a pod of the quota comes or goes.
const mostNames = 100

// limits returns the amounts of the min or max at the path, nil if it is absent. A list that
// names too many resources cannot be read.
func (r *quantityReader) limits(path string, q Quantities) object.Amounts {
	if len(q) > mostNames {
		r.unreadable = append(r.unreadable, fmt.Sprintf("%s names %d resources, more than %d", path, len(q), mostNames))
		return object.Amounts{}
	}
	return r.amounts(path, q)
}

// longestName is the length of the longest name of a resource that a pod can request: a DNS
// subdomain of 253 characters, a slash, and 63 characters.
const longestName = 253 + 1 + 63

// amounts returns the amounts of the list at the path, nil if it is absent.
func (r *quantityReader) amounts(path string, q Quantities) object.Amounts {
	if q == nil {
		return nil
	}
	amounts := object.Amounts{}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		text := strings.TrimSpace(string(q[name]))
		if why, bad := strings.CutPrefix(text, badMetadata); name == "" && bad {
			r.unreadable = append(r.unreadable, badMetadata+shortened(why))
			continue
		}
		if name == "" {
			r.unreadable = append(r.unreadable, fmt.Sprintf("%s is not a list of amounts: %s", path, shortened(text)))
			continue
		}
		if len(name) > longestName {
			r.faults = append(r.faults, fmt.Sprintf("%s of %s is ignored: no resource has a name of %d characters", path, shortened(string(name)), len(name)))
			continue
		}
		path := path + " of " + string(name)
		if !isCounted(name) {
			r.faults = append(r.faults, path+" is ignored: no scheduler counts such a resource")
			continue
		}
		quantity, err := q[name].parse()
		if err != nil {
			r.unreadable = append(r.unreadable, fmt.Sprintf("%s, %s, is not a quantity, such as 500m, 2 or 1Gi", path, shortened(text)))
			continue
		}
		n := valueOf(name, quantity)
		if n < 0 {
			r.faults = append(r.faults, fmt.Sprintf("%s, %s, is negative and counts as 0", path, text))
		} else if !isWhole(name, quantity) {
			r.faults = append(r.faults, fmt.Sprintf("%s, %s, is not a whole number and counts as %d", path, text, n))
		}
		amounts = append(amounts, object.Amount{Name: name, Value: max(n, 0)})
	}
	return amounts
}

// isCounted reports whether a quota counts the resource.
func isCounted(name v1.ResourceName) bool {
	return ours.IsScalar(name) || name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage
}

// valueOf returns the quantity of the resource in the units of resource.Vector.
func valueOf(name v1.ResourceName, q resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return ours.Milli(q)
	}
	return ours.Whole(q)
}

// Amount returns the amount of the resource that the text gives. It is an error if a quota would
// not count it as it is written.
func Amount(name v1.ResourceName, text string) (object.Amount, error) {
	if !isCounted(name) {
		return object.Amount{}, fmt.Errorf("no quota counts %s", name)
	}
	quantity, err := QuantityText(text).parse()
	if err != nil {
		return object.Amount{}, fmt.Errorf("%s is not a quantity, such as 500m, 2 or 1Gi", shortened(text))
	}
	a := object.Amount{Name: name, Value: valueOf(name, quantity)}
	if a.Value < 0 {
		return object.Amount{}, fmt.Errorf("%s is negative", text)
	}
	if !isWhole(name, quantity) {
		return object.Amount{}, fmt.Errorf("%s is not a whole number", text)
	}
	return a, nil
}

// longestShown is how many bytes of what cannot be read are shown.
const longestShown = 60

// shortened returns the text, quoted, and no more than a line of it.
func shortened(text string) string {
	if len(text) > longestShown {
		text = text[:longestShown] + "..."
	}
	return fmt.Sprintf("%q", text)
}
