package resource

import (
	"math"
	"math/big"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// A quantity is rounded up, to whole units and to thousandths.
func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		q            string
		whole, milli int64
	}{
		{"0", 0, 0},
		{"1", 1, 1000},
		{"1500m", 2, 1500},
		{"1n", 1, 1},
		{"0.0015", 1, 2},
		{"1.5Gi", 3 << 29, 3 << 29 * 1000},
		{"9223372036854775807", math.MaxInt64, math.MaxInt64},
		{"9223372036854775807m", 9223372036854776, math.MaxInt64},
		{"9223372036854775808m", 9223372036854776, math.MaxInt64},
		{"9223372036854775", 9223372036854775, 9223372036854775000},
		{"9223372036854776", 9223372036854776, math.MaxInt64},
		{"10E", math.MaxInt64, math.MaxInt64},
		{"16Ei", math.MaxInt64, math.MaxInt64},
		{"1e30", math.MaxInt64, math.MaxInt64},
		{"1e999999999", math.MaxInt64, math.MaxInt64},
		{"-1e999999999", -math.MaxInt64, -math.MaxInt64},
		{"-2", -2, -2000},
		{"-10E", -math.MaxInt64, -math.MaxInt64},
		{"-9223372036854775808", -math.MaxInt64, -math.MaxInt64},
		{"-1500m", -2, -1500},
	} {
		q := resource.MustParse(c.q)
		if whole, milli := Whole(q), Milli(q); whole != c.whole || milli != c.milli {
			t.Errorf("%s: %d whole, %d milli; want %d and %d", c.q, whole, milli, c.whole, c.milli)
		}
	}
}

// A vector has the resources that the scheduler counts, sorted by name, without
// zeros.
func TestFromList(t *testing.T) {
	got := FromList(v1.ResourceList{
		"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Ki"), "ephemeral-storage": resource.MustParse("3"),
		"pods": resource.MustParse("110"), "storage": resource.MustParse("5"), "requests.example.com/x": resource.MustParse("5"),
		"example.com/none": resource.MustParse("0"), "b.example.com/x": resource.MustParse("2"), "a.example.com/x": resource.MustParse("1"),
		"hugepages-2Mi": resource.MustParse("4Mi"),
	})
	want := Vector{MilliCPU: 1500, Memory: 1024, EphemeralStorage: 3, Scalars: []Scalar{
		{"a.example.com/x", 1}, {"b.example.com/x", 2}, {"hugepages-2Mi", 4 << 20},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	for name, n := range map[v1.ResourceName]int64{"cpu": 1500, "memory": 1024, "ephemeral-storage": 3, "b.example.com/x": 2, "pods": 0} {
		if got.Of(name) != n {
			t.Errorf("Of(%s) = %d, want %d", name, got.Of(name), n)
		}
	}
}

// Names of resources are scalar or extended as in v1.37.
func TestNames(t *testing.T) {
	for name, want := range map[v1.ResourceName]struct{ scalar, extended bool }{
		"nvidia.com/gpu":                {true, true},
		"hugepages-1Gi":                 {true, false},
		"attachable-volumes-csi-x":      {true, false},
		"kubernetes.io/batch-cpu":       {true, false},
		"sub.kubernetes.io/batch-cpu":   {true, false},
		"cpu":                           {false, false},
		"pods":                          {false, false},
		"requests.nvidia.com/gpu":       {false, false},
		"/x":                            {false, false},
		"example.com/":                  {false, false},
		"example.com/a/b":               {false, false},
		"exa mple.com/a":                {false, false},
		"":                              {false, false},
		"example.com/with space inside": {false, false},
	} {
		if s, e := IsScalar(name), IsExtended(name); s != want.scalar || e != want.extended {
			t.Errorf("%q: scalar %v, extended %v; want %v and %v", name, s, e, want.scalar, want.extended)
		}
	}
}

// Sums and differences stop at the ends of int64.
func TestSumsSaturate(t *testing.T) {
	ends := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1}))
	clamp := func(x *big.Int) int64 {
		if x.IsInt64() {
			return x.Int64()
		}
		if x.Sign() < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := ends.Draw(t, "a"), ends.Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		if got, want := Add(a, b), clamp(new(big.Int).Add(x, y)); got != want {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := Sub(a, b), clamp(new(big.Int).Sub(x, y)); got != want {
			t.Fatalf("%d - %d = %d, want %d", a, b, got, want)
		}
	})
}

// Vectors have the same key only if they are equal.
func TestKeysTellVectorsApart(t *testing.T) {
	vectors := rapid.Custom(func(t *rapid.T) Vector {
		n := rapid.Int64Range(0, 11)
		v := Vector{MilliCPU: n.Draw(t, "cpu"), Memory: n.Draw(t, "memory"), EphemeralStorage: n.Draw(t, "storage")}
		for _, name := range []v1.ResourceName{"a/x", "a/x\"1 \"a/y", "a/y"} {
			if x := n.Draw(t, "scalar"); x > 0 && x < 4 {
				v.Scalars = append(v.Scalars, Scalar{name, x})
			}
		}
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := vectors.Draw(t, "a"), vectors.Draw(t, "b")
		if same := string(a.AppendKey(nil)) == string(b.AppendKey(nil)); same != reflect.DeepEqual(a, b) {
			t.Fatalf("%+v and %+v: same key %v", a, b, same)
		}
	})
}
