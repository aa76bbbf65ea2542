package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/spelling"
)

// splitPath splits a path such as profiles[0].name into profiles, 0 and name.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// typeAt is the type of the field at the path below a type, nil if there is none.
func typeAt(t reflect.Type, path []string) reflect.Type {
	for _, name := range path {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t == nil:
			return nil
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
			t = t.Elem()
		case t.Kind() == reflect.Struct:
			t = fields(t)[name]
		default:
			return nil
		}
	}
	return t
}

// fields are the fields of a struct by their names in JSON.
func fields(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return all
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			for name, of := range fields(f.Type) { // into a map
				all[name] = of
			}
			continue
		}
		all[name] = f.Type
	}
	return all
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for name := range fields(t) { // meant sorts them
		names = append(names, name)
	}
	return names
}

// inWords says what a value of the type looks like in a file.
func inWords(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return "another value"
	case t == reflect.TypeFor[metav1.Duration]():
		return `a duration such as "10s"`
	case t == reflect.TypeFor[[]byte]():
		return "bytes in base64"
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "text of another form"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64 {
		return fmt.Sprintf("a whole number of at most %d bits", t.Bits())
	}
	return "another value"
}

// meant asks if a name that is not among the known ones was meant as the nearest of
// them. It is empty if none is at most so far away.
func meant(name string, known []string, farthest int) string {
	best, least := "", farthest+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}
