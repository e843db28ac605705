package kubernetes

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// file is a file of a volume.
type file struct {
	content []byte
	mode    os.FileMode
}

// volumeFiles returns the files of a volume by their paths, which are relative.
func volumeFiles(ctx context.Context, c *Client, namespace string, v *Volume) (map[string]file, error) {
	files := make(map[string]file)
	add := func(kind string, source *VolumeSource, mode uint32) error {
		if source == nil {
			return nil
		}
		return source.read(ctx, c, namespace, kind, os.FileMode(mode), files)
	}
	switch {
	case v.ConfigMap != nil:
		return files, add("configmaps", v.ConfigMap, v.ConfigMap.Mode)
	case v.Secret != nil:
		return files, add("secrets", v.Secret, v.Secret.Mode)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ConfigMap == nil && source.Secret == nil {
				return nil, fmt.Errorf("the volume %s has a source that is neither a ConfigMap nor a Secret, which "+
					"this kubelet does not support", v.Name)
			}
			if err := add("configmaps", source.ConfigMap, v.Projected.Mode); err != nil {
				return nil, err
			}
			if err := add("secrets", source.Secret, v.Projected.Mode); err != nil {
				return nil, err
			}
		}
		return files, nil
	default:
		return nil, fmt.Errorf("the volume %s has a type that this kubelet does not support", v.Name)
	}
}

// read adds the files of one ConfigMap or Secret.
func (s *VolumeSource) read(ctx context.Context, c *Client, namespace, kind string, mode os.FileMode,
	files map[string]file) error {
	name := s.Name + s.SecretName
	var object struct {
		Data map[string]string `json:"data"`
	}
	if err := c.Get(ctx, "/api/v1/namespaces/"+namespace+"/"+kind+"/"+name, &object); err != nil {
		if s.Optional && Refused(err, http.StatusNotFound) {
			return nil
		}
		return err
	}
	items := s.Items
	if len(items) == 0 {
		for key := range object.Data {
			items = append(items, KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		text, exists := object.Data[item.Key]
		if !exists && s.Optional {
			continue
		}
		if !exists {
			return fmt.Errorf("%s has no entry %s", name, item.Key)
		}
		content := []byte(text)
		if kind == "secrets" {
			var err error
			if content, err = base64.StdEncoding.DecodeString(text); err != nil {
				return fmt.Errorf("entry %s of %s: %w", item.Key, name, err)
			}
		}
		files[item.Path] = file{content, mode}
	}
	return nil
}

// writeVolume writes the files of a volume into a folder, for a group of the container.
func writeVolume(folder string, files map[string]file, group int) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for path, f := range files {
		if parent := filepath.Dir(path); strings.Contains(path, "/") {
			if err := root.MkdirAll(parent, 0o755); err != nil {
				return err
			}
		}
		if err := root.WriteFile(path, f.content, 0o600); err != nil {
			return err
		}
		// The mode of a new file would depend on the mask of this process.
		if err := root.Chown(path, 0, group); err != nil {
			return err
		}
		if err := root.Chmod(path, f.mode); err != nil {
			return err
		}
	}
	return nil
}
