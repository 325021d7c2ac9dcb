from tests.inference.conftest import shop_folder
from tests.tasks.conftest import one_thread

__all__ = ["one_thread", "shop_folder"]
