"""The settings in `lake.yaml`: models, validation, template."""
