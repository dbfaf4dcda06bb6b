"""Why a recorded run takes as long as it does: its critical path, what-ifs, efficiencies, pages."""
