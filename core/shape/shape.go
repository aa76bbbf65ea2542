package shape

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// MaxPoint is the highest score of a point of a shape.
const MaxPoint = 10

// Tabulate returns the score, 0 to 100, for each utilization from 0 to 100 percent: straight
// lines between the points, level before the first and after the last. Fractions are cut. A
// point's score of 10 counts as 100. There must be a point.
func Tabulate(points []configv1.UtilizationShapePoint) (f [101]int64) {
	for p := range f {
		f[p] = at(points, int64(p))
	}
	return f
}

// at returns the score, 0 to 100, for utilization p, in percent.
func at(points []configv1.UtilizationShapePoint, p int64) int64 {
	const scale = 100 / MaxPoint
	for i, point := range points {
		x, y := int64(point.Utilization), int64(point.Score)*scale
		if p > x {
			continue
		}
		if i == 0 {
			return y
		}
		x0, y0 := int64(points[i-1].Utilization), int64(points[i-1].Score)*scale
		return y0 + (y-y0)*(p-x0)/(x-x0)
	}
	return int64(points[len(points)-1].Score) * scale
}

// Validate returns the errors of a shape with these points, reported at path, in
// kube-scheduler's words; nil if it is valid.
func Validate(path *field.Path, points []configv1.UtilizationShapePoint) field.ErrorList {
	if len(points) == 0 {
		return field.ErrorList{field.Required(path, "at least one point must be specified")}
	}
	var errs field.ErrorList
	for i := 1; i < len(points); i++ {
		if points[i-1].Utilization >= points[i].Utilization {
			errs = append(errs, field.Invalid(path.Index(i).Child("utilization"), points[i].Utilization, "values must be sorted in increasing order"))
			break
		}
	}
	inRange := func(path *field.Path, n, most int32) {
		if n < 0 || n > most {
			errs = append(errs, field.Invalid(path, n, fmt.Sprintf("not in valid range [0, %d]", most)))
		}
	}
	for i, p := range points {
		inRange(path.Index(i).Child("utilization"), p.Utilization, 100)
		inRange(path.Index(i).Child("score"), p.Score, MaxPoint)
	}
	return errs
}
