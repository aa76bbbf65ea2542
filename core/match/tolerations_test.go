package match

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"
)

var (
	someEffect = rapid.SampledFrom([]v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule})
	taintKey   = rapid.SampledFrom([]string{"gpu", "disk"})
	taintValue = rapid.SampledFrom([]string{"", "1", "2", "10", "-1", "+2", "02", "x", "9223372036854775808"})

	someTaint = rapid.Custom(func(t *rapid.T) v1.Taint {
		return v1.Taint{Key: taintKey.Draw(t, "key"), Value: taintValue.Draw(t, "value"), Effect: someEffect.Draw(t, "effect")}
	})
	someToleration = rapid.Custom(func(t *rapid.T) v1.Toleration {
		return v1.Toleration{
			Key:      rapid.OneOf(taintKey, rapid.Just("")).Draw(t, "key"),
			Operator: rapid.SampledFrom([]v1.TolerationOperator{"", v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpLt, v1.TolerationOpGt, "Near"}).Draw(t, "operator"),
			Value:    taintValue.Draw(t, "value"),
			Effect:   rapid.OneOf(someEffect, rapid.Just(v1.TaintEffect(""))).Draw(t, "effect"),
		}
	})
)

func TestToleratesAsTheAPI(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(someToleration, 0, 3).Draw(t, "tolerations")
		taint := someTaint.Draw(t, "taint")
		for _, comparisons := range []bool{false, true} {
			want := false
			for i := range list {
				want = want || list[i].ToleratesTaint(klog.Logger{}, &taint, comparisons)
			}
			if got := NewTolerations(list).Tolerates(&taint, comparisons); got != want {
				t.Fatalf("%+v, %+v, comparisons %v: got %v", list, taint, comparisons, got)
			}
		}
	})
}

func TestAdmitsLooksAtHardTaints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tolerations := NewTolerations(rapid.SliceOfN(someToleration, 0, 3).Draw(t, "tolerations"))
		taints := rapid.SliceOfN(someTaint, 0, 3).Draw(t, "taints")
		want := true
		for i := range taints {
			if taints[i].Effect != v1.TaintEffectPreferNoSchedule && !tolerations.Tolerates(&taints[i], false) {
				want = false
			}
		}
		if got := tolerations.Admits(taints, false); got != want {
			t.Fatalf("got %v", got)
		}
	})
}

func TestKeysOfTolerations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(someToleration, 0, 2).Draw(t, "a")
		b := rapid.SliceOfN(someToleration, 0, 2).Draw(t, "b")
		same := len(a) == len(b)
		for i := range a {
			same = same && a[i] == b[i]
		}
		if (NewTolerations(a).Key == NewTolerations(b).Key) != same {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
	seconds := int64(5)
	with := v1.Toleration{Key: "gpu", TolerationSeconds: &seconds}
	without := v1.Toleration{Key: "gpu"}
	if NewTolerations([]v1.Toleration{with}).Key != NewTolerations([]v1.Toleration{without}).Key {
		t.Error("tolerationSeconds say nothing about placement")
	}
}
