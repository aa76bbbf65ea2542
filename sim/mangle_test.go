package sim

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mangler makes nonsense of API objects: it walks over every field, set or
// not, and now and then puts something there that nobody should have written.
type mangler struct {
	*rand.Rand
	// one field of that many changes
	rate int
	// brief: no text is longer than a line.
	brief bool
}

// mangle changes what o points to.
func (m *mangler) mangle(o metav1.Object) {
	name, namespace, uid := o.GetName(), o.GetNamespace(), o.GetUID()
	m.walk(reflect.ValueOf(o).Elem(), "", 0)
	o.SetName(name)
	o.SetNamespace(namespace)
	o.SetUID(uid)
	if m.IntN(200) == 0 {
		o.SetNamespace(m.text(""))
	}
}

func (m *mangler) hit() bool { return m.IntN(m.rate) == 0 }

func (m *mangler) walk(v reflect.Value, field string, depth int) {
	if depth > 12 {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		if m.hit() {
			*x = m.quantity()
		}
		return
	case *metav1.Time:
		if m.hit() {
			*x = metav1.Time{Time: time.Unix(pick(m, []int64{0, -1 << 60, 1 << 40, 1 << 60, 253402300800}), 0)}
		}
		return
	case *intstr.IntOrString:
		if m.hit() {
			*x = pick(m, []intstr.IntOrString{intstr.FromString("lots"), intstr.FromString("-50%"), intstr.FromString("1000000000%"),
				intstr.FromString(""), intstr.FromInt32(-1), intstr.FromInt32(math.MaxInt32), {Type: 7}})
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "TypeMeta" {
				m.walk(v.Field(i), v.Type().Field(i).Name, depth+1)
			}
		}
	case reflect.Pointer:
		m.pointer(v, field, depth)
	case reflect.Slice:
		m.slice(v, field, depth)
	case reflect.Map:
		m.mapping(v, field, depth)
	case reflect.String:
		if m.hit() {
			v.SetString(m.text(field))
		}
	case reflect.Bool:
		if m.hit() {
			v.SetBool(!v.Bool())
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if m.hit() {
			v.SetInt(m.number(v.Kind()))
		}
	}
}

func (m *mangler) pointer(v reflect.Value, field string, depth int) {
	switch {
	case m.hit() && !v.IsNil():
		v.SetZero()
	case m.hit() && v.IsNil():
		v.Set(reflect.New(v.Type().Elem()))
		fallthrough
	case !v.IsNil():
		m.walk(v.Elem(), field, depth+1)
	}
}

func (m *mangler) slice(v reflect.Value, field string, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return
	}
	for i := range v.Len() {
		m.walk(v.Index(i), field, depth+1)
	}
	if !m.hit() {
		return
	}
	item := reflect.Zero(v.Type().Elem())
	if v.Len() > 0 {
		item = v.Index(m.IntN(v.Len()))
	}
	switch n := m.IntN(20); {
	case n == 0:
		v.SetZero()
	case n < 15:
		fresh := reflect.New(v.Type().Elem()).Elem()
		fresh.Set(item)
		v.Set(reflect.Append(v, fresh))
		m.walk(v.Index(v.Len()-1), field, depth+1)
	case depth < 6:
		for range pick(m, []int{2, 10, 100, 1000}) {
			v.Set(reflect.Append(v, item))
		}
	}
}

func (m *mangler) mapping(v reflect.Value, field string, depth int) {
	if !m.hit() {
		return
	}
	if m.IntN(10) == 0 {
		v.SetZero()
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for range pick(m, []int{1, 1, 1, 2, 300}) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString(m.text(field + "Key"))
		m.walk(value, field, depth+1)
		v.SetMapIndex(key, value)
	}
}

func pick[T any](m *mangler, of []T) T { return of[m.IntN(len(of))] }

func (m *mangler) number(k reflect.Kind) int64 {
	n := pick(m, []int64{0, -1, 1, 2, 70000, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, math.MaxInt32 - 1})
	if k == reflect.Int32 {
		n = max(math.MinInt32, min(math.MaxInt32, n))
	}
	return n
}

var quantities = []string{"0", "-1", "-5Gi", "1n", "1e18", "9223372036854775807", "9223372036854775807Ei", "1e999999999", "-1e999999999", "1e-99", "0.1", "3"}

func (m *mangler) quantity() resource.Quantity {
	q, err := resource.ParseQuantity(pick(m, quantities))
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

// nonsense that may stand in any field; words that mean something somewhere
// are among it.
var nonsense = []string{"", " ", "a", "/", "a/b/c", "-", "\x00", "\xff\xfe", "💥", "NaN", "1e999", "-1", "*", "zone", "kubernetes.io/hostname",
	"topology.kubernetes.io/zone", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "DoNotSchedule", "Honor", "Equal", "NoExecute", "NoSchedule",
	"cpu", "pods", "memory", "example.com/gpu", "kubernetes.io/", "hugepages-", "hugepages-x", "attachable-volumes-", "requests.a/b", "metadata.name",
	"default", "default-scheduler", "WaitForFirstConsumer", "Immediate", "ReadWriteOncePod", "ReadWriteMany", "Bound", "Lost", "gpu.example.com", "TCP", "::", "All", "ExactCount"}

var expressions = []string{"", "true", "1 +", "device", `device.driver == 1`, `device.attributes["x"].y`, `device.capacity["x"].y.isGreaterThan(quantity("1e999"))`,
	`device.driver.matches("(a+)+$")`, `[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f >= 0))))))`,
	strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500)}

func (m *mangler) text(field string) string {
	switch {
	case field == "Expression":
		return pick(m, expressions)
	case m.IntN(300) == 0 && !m.brief:
		return strings.Repeat("x", 1_000_000)
	case m.IntN(20) == 0:
		return strings.Repeat("long", 100)
	}
	return pick(m, nonsense)
}
