"""`python -m datalake_assets.cli`: the same as `datalake`."""

import sys

from datalake_assets.cli.app import main

sys.exit(main())
