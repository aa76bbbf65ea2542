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
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berth-scheduler/berth/core/object"
	ours "github.com/berth-scheduler/berth/core/resource"
)

// ElasticQuota is the API object of scheduling.x-k8s.io/v1alpha1, which a
// CustomResourceDefinition defines (deploy/elasticquotas.yaml).
type ElasticQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ElasticQuotaSpec   `json:"spec,omitempty"`
	Status            ElasticQuotaStatus `json:"status,omitempty"`
}

// ElasticQuotaSpec is what the pods of a namespace are guaranteed, and what they may use.
type ElasticQuotaSpec struct {
	Min Quantities `json:"min,omitempty"`
	Max Quantities `json:"max,omitempty"`
}

// ElasticQuotaStatus is what they use.
type ElasticQuotaStatus struct {
	Used Quantities `json:"used,omitempty"`
}

// ElasticQuotaList is a list of ElasticQuotas.
type ElasticQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticQuota `json:"items"`
}

// Quantities are amounts by the name of the resource, as written. An API server checks of a
// custom resource's quantities only how they look, and exact arithmetic on some that look
// right would never end.
type Quantities map[v1.ResourceName]QuantityText

// QuantityText is a quantity as written, as a JSON number or a text.
type QuantityText string

// UnmarshalJSON takes a number or a text.
func (q *QuantityText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '"' {
		var n json.Number
		err := json.Unmarshal(data, &n)
		*q = QuantityText(n)
		return err
	}
	return json.Unmarshal(data, (*string)(q))
}

func init() {
	version := object.ElasticQuotas.GroupVersion()
	scheme.Scheme.AddKnownTypes(version, &ElasticQuota{}, &ElasticQuotaList{})
	metav1.AddToGroupVersion(scheme.Scheme, version)
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
		Parent: q.Annotations[object.ParentAnnotation]}
	var faults []string
	decoded.Min, faults = amountsIn("min", q.Spec.Min, faults)
	decoded.Max, faults = amountsIn("max", q.Spec.Max, faults)
	decoded.Used, _ = amountsIn("used", q.Status.Used, nil)
	for i := range decoded.Min {
		a := &decoded.Min[i]
		if most, bounded := decoded.Max.Of(a.Name); bounded && a.Value > most {
			faults = append(faults, fmt.Sprintf("spec.min of %s, %s, is more than spec.max, %s, which counts as min", a.Name, shownAmount(*a), shownAmount(object.Amount{Name: a.Name, Value: most})))
			a.Value = most
		}
	}
	if len(decoded.Min)+len(decoded.Max) == 0 {
		faults = append(faults, "it names no resource in spec.min and spec.max, so it bounds nothing and guarantees nothing")
	}
	if namespace, name, _ := strings.Cut(decoded.Parent, "/"); decoded.Parent != "" && (namespace == "" || name == "") {
		faults = append(faults, fmt.Sprintf("its annotation %s is %q, and should be NAMESPACE/NAME; it has no parent", object.ParentAnnotation, decoded.Parent))
		decoded.Parent = ""
	}
	decoded.Faults = faults
	return decoded
}

func shownAmount(a object.Amount) string { return ours.Quantity(a.Name, a.Value).String() }

// unreasonable matches quantities on which exact arithmetic takes forever.
var unreasonable = regexp.MustCompile(`[eE][-+]?[0-9]{4}|[0-9]{101}`)

// amountsIn returns the amounts of a list, nil if it is absent, and appends to faults what of
// it does not count as it is written.
func amountsIn(list string, q Quantities, faults []string) (object.Amounts, []string) {
	if q == nil {
		return nil, faults
	}
	amounts := object.Amounts{}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		path := fmt.Sprintf("spec.%s of %s", list, name)
		if !ours.IsScalar(name) && name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage {
			faults = append(faults, path+" is ignored: no scheduler counts such a resource")
			continue
		}
		text := strings.TrimSpace(string(q[name]))
		quantity, err := resource.Quantity{}, resource.ErrFormatWrong
		if !unreasonable.MatchString(text) {
			quantity, err = resource.ParseQuantity(text)
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s is ignored: it is not a quantity, such as 500m, 2 or 1Gi", path))
			continue
		}
		n := ours.Whole(quantity)
		if name == v1.ResourceCPU {
			n = ours.Milli(quantity)
		}
		if n < 0 {
			faults = append(faults, fmt.Sprintf("%s, %s, is negative and counts as 0", path, text))
		}
		amounts = append(amounts, object.Amount{Name: name, Value: max(n, 0)})
	}
	return amounts, faults
}
