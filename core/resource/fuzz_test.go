package resource

import (
	"math"
	"math/big"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

var endless = regexp.MustCompile(`[eE]-[0-9]{3}|[0-9.]{18}[eE][+]?[0-9]{4}`)

// Whatever a quantity says, it becomes a number at once, and the right one:
// rounded away from zero, and kept within int64.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{"0", "1", "100m", "-1", "1.5Gi", "1e3", "1E", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
		"0.0001", "1n", "-1n", "3u", "1e999999999", "-1e999999999", "e999999999", "-0e999999999", "1Ei", "8Ei", "0.1Ki", "1e18", "9.3e18", "123456789.987654321"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if endless.MatchString(text) {
			return // Kubernetes' own parser takes forever; edge/manifest refuses these
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return
		}
		whole, milli := Whole(q), Milli(q)
		if e := q.AsDec().Scale(); e > 60 || e < -60 {
			return // big numbers would take forever
		}
		dec := q.AsDec()
		exact := new(big.Rat).SetInt(dec.UnscaledBig())
		power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(dec.Scale(), -dec.Scale()))), nil))
		if dec.Scale() > 0 {
			exact.Quo(exact, power)
		} else {
			exact.Mul(exact, power)
		}
		if want := nearest(exact); whole != want {
			t.Errorf("%s is %d, want %d", text, whole, want)
		}
		if want := nearest(exact.Mul(exact, big.NewRat(1000, 1))); milli != want {
			t.Errorf("%s is %d thousandths, want %d", text, milli, want)
		}
	})
}

// nearest is the number rounded away from zero, at most the ends of int64. The
// lower end is that of the upper with its sign turned.
func nearest(r *big.Rat) int64 {
	n, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() != 0 {
		n.Add(n, big.NewInt(int64(rest.Sign())))
	}
	switch {
	case n.IsInt64() && n.Int64() != math.MinInt64:
		return n.Int64()
	case n.Sign() < 0:
		return -math.MaxInt64
	}
	return math.MaxInt64
}

// Sums and differences are those of big numbers, kept within int64.
func FuzzAddSub(f *testing.F) {
	f.Add(int64(1), int64(2))
	f.Add(int64(math.MaxInt64), int64(1))
	f.Add(int64(math.MinInt64), int64(-1))
	f.Add(int64(math.MinInt64), int64(math.MinInt64))
	f.Add(int64(0), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, a, b int64) {
		within := func(n *big.Int) int64 {
			switch {
			case n.IsInt64():
				return n.Int64()
			case n.Sign() < 0:
				return math.MinInt64
			}
			return math.MaxInt64
		}
		if got, want := Add(a, b), within(new(big.Int).Add(big.NewInt(a), big.NewInt(b))); got != want {
			t.Errorf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := Sub(a, b), within(new(big.Int).Sub(big.NewInt(a), big.NewInt(b))); got != want {
			t.Errorf("%d - %d = %d, want %d", a, b, got, want)
		}
	})
}
