//! The list of traffic models, and everything that follows from a line in it.

/// Makes, from one line per model, the enum that a scenario reads. A line is a variant and the
/// module that has the parameters under the variant's name.
macro_rules! models {
    ($($(#[$doc:meta])* $model:ident($module:ident),)+) => {
        aqmlab_declare::registry! {
            /// A traffic model and its parameters.
            #[derive(Clone, Debug, PartialEq)]
            pub enum Model {
                $($(#[$doc])* $model($module::$model),)+
            }
        }

        $(pub use $module::$model;)+

        impl Model {
            /// Small classes as a scenario file has them, one for each model, in the order of the
            /// enum.
            pub fn examples() -> Vec<&'static str> {
                vec![$(<$module::$model as ModelParameters>::example(),)+]
            }

            /// The model's parameters.
            pub fn parameters(&self) -> &dyn ModelParameters {
                match self {
                    $(Self::$model(params) => params,)+
                }
            }

            /// The model's parameters, to be changed.
            pub fn parameters_mut(&mut self) -> &mut dyn ModelParameters {
                match self {
                    $(Self::$model(params) => params,)+
                }
            }
        }
    };
}

pub(crate) use models;
