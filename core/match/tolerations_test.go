package match

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"
)

var (
	effects                = []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule}
	values                 = []string{"", "1", "2", "10", "-1", "-", "+2", "02", "x", "9223372036854775808"}
	operatorsOfTolerations = []v1.TolerationOperator{"", v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpLt, v1.TolerationOpGt, "Near"}

	someEffect = rapid.SampledFrom(effects)
	taintKey   = rapid.SampledFrom([]string{"gpu", "disk"})
	taintValue = rapid.SampledFrom(values)

	someTaint = rapid.Custom(func(t *rapid.T) v1.Taint {
		return v1.Taint{Key: taintKey.Draw(t, "key"), Value: taintValue.Draw(t, "value"), Effect: someEffect.Draw(t, "effect")}
	})
	someToleration = rapid.Custom(func(t *rapid.T) v1.Toleration {
		return v1.Toleration{
			Key:      rapid.OneOf(taintKey, rapid.Just("")).Draw(t, "key"),
			Operator: rapid.SampledFrom(operatorsOfTolerations).Draw(t, "operator"),
			Value:    taintValue.Draw(t, "value"),
			Effect:   rapid.OneOf(someEffect, rapid.Just(v1.TaintEffect(""))).Draw(t, "effect"),
		}
	})
)

// Every kind of toleration against every kind of taint.
func TestToleratesAsTheAPI(t *testing.T) {
	var taints []v1.Taint
	for _, value := range values {
		for _, effect := range effects {
			taints = append(taints, v1.Taint{Key: "gpu", Value: value, Effect: effect})
		}
	}
	for _, operator := range operatorsOfTolerations {
		for _, key := range []string{"", "gpu", "disk"} {
			for _, value := range values {
				for _, effect := range append(effects, "") {
					toleration := v1.Toleration{Key: key, Operator: operator, Value: value, Effect: effect}
					checkToleration(t, toleration, taints)
				}
			}
		}
	}
}

func checkToleration(t *testing.T, toleration v1.Toleration, taints []v1.Taint) {
	t.Helper()
	for i := range taints {
		for _, comparisons := range []bool{false, true} {
			want := toleration.ToleratesTaint(klog.Logger{}, &taints[i], comparisons)
			one := NewTolerations([]v1.Toleration{toleration})
			two := NewTolerations([]v1.Toleration{{Key: "other", Operator: v1.TolerationOpExists}, toleration})
			if one.Tolerates(&taints[i], comparisons) != want || two.Tolerates(&taints[i], comparisons) != want {
				t.Errorf("%+v, %+v, comparisons %v: want %v", toleration, taints[i], comparisons, want)
			}
		}
	}
}

// Of many tolerations one that tolerates the taint is found, whatever the others are.
func TestManyTolerations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(someToleration, manyTolerations-1, 3*manyTolerations).Draw(t, "tolerations")
		if rapid.Bool().Draw(t, "of few kinds") { // most lists tolerate all taints
			for i := range list {
				list[i].Key, list[i].Effect = "gpu", list[i%2].Effect
			}
		}
		taint, comparisons := someTaint.Draw(t, "taint"), rapid.Bool().Draw(t, "comparisons")
		want := slices.ContainsFunc(list, func(of v1.Toleration) bool { return of.ToleratesTaint(klog.Logger{}, &taint, comparisons) })
		if got := NewTolerations(list).Tolerates(&taint, comparisons); got != want {
			t.Fatalf("got %v", got)
		}
	})
}

// A node admits a pod that tolerates all taints but those of PreferNoSchedule.
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

// Tolerations have the same key only if they are equal.
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
